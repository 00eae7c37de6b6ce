# x509.py - what a certificate in DER says [RFC 5280, 4.1]: the name of a client; and, on
# MicroPython in a large heap, whether a server's has the right dates and key. On a board deploy
# has looked at these. Loaded on demand; owns nothing. Control plane: allocates.
import binascii
import time


_COMMON_NAME = b"\x06\x03\x55\x04\x03"  # its object identifier, in DER
_TEXTS = (0x0C, 0x13, 0x16)  # UTF8String, PrintableString, IA5String
_LATIN = 0x14  # TeletexString, as OpenSSL reads it
_WIDE = {0x1E: 2, 0x1C: 4}  # BMPString, UniversalString: bytes of a character
_SEQUENCE = 0x30
_UTC_TIME = 0x17  # a date whose year has two digits
_YEAR = 2025  # before it a clock is not set
# Fields of the part that is signed, behind the version
_FIELD_DATES, _FIELD_SUBJECT, _FIELD_KEY = range(3, 6)


def common_name(der):
    """The first common name in the subject of a certificate; "": none, or no text. A CA may have
    signed anything."""
    try:
        return _common_name(der) if der else ""
    except (IndexError, ValueError):
        return ""


def _common_name(der):
    _, at, end = _field(der, _FIELD_SUBJECT)
    while at < end:  # sets of pairs of an identifier and a text
        _, inner, at = _next(der, at)
        while inner < at:
            _, begin, inner = _next(der, inner)
            value = _next(der, begin)[2]
            if der[begin:value] == _COMMON_NAME:
                kind, begin, end = _next(der, value)
                return _text(kind, der[begin:end])
    return ""


def check(certificate, key):
    """The contents of a certfile and its keyfile, in PEM or DER -> errors as (key, what was
    expected), and warnings as (key, text)."""
    der = _in_pem(certificate, b"CERTIFICATE-----")
    errors = []
    if not _may_fit(der, _in_pem(key, b"PRIVATE KEY-----")):
        errors.append(("keyfile", "the key of the certificate in certfile"))
    return errors, _warnings(der)


def _in_pem(data, title):
    # The first block with this title, as DER
    parts = data.split(title)
    return binascii.a2b_base64(parts[1].split(b"-----")[0]) if len(parts) > 2 else data


def _may_fit(der, key):
    # A key has the public one in it: RSA's modulus always, the point of ECDSA almost always.
    at = _next(der, _field(der, _FIELD_KEY)[1])[2]
    _, at, end = _next(der, at)
    public = der[at + 1 : end]
    if public[0] == _SEQUENCE:
        _, at, end = _next(public, _next(public, 0)[1])
        return public[at:end] in key
    return public in key or bytes((3, len(public) + 1 & 255, 0, 4)) not in key


def _warnings(der):
    # Is it the wrong time for the certificate?
    clock = time.gmtime()[:6]
    if clock[0] < _YEAR:
        return []
    now = "%04d%02d%02d%02d%02d%02d" % clock
    at = _field(der, _FIELD_DATES)[1]
    for when in ("before", "after"):
        kind, begin, at = _next(der, at)
        date = der[begin:at].decode()
        if kind == _UTC_TIME:
            date = ("19" if date[0] > "4" else "20") + date
        if now < date if when == "before" else now > date:
            date = "%s-%s-%s" % (date[:4], date[4:6], date[6:8])
            text = "the certificate is not valid %s %s, and clients will refuse it"
            return [("certfile", text % (when, date))]
    return []


def _text(kind, data):
    # ValueError: it is no text.
    if kind in _TEXTS:
        return data.decode()
    width = 1 if kind == _LATIN else _WIDE[kind] if kind in _WIDE else 0
    if not width or len(data) % width:
        raise ValueError
    text = ""
    for at in range(0, len(data), width):
        number = int.from_bytes(data[at : at + width], "big")
        if 0xD800 <= number < 0xE000 or number > 0x10FFFF:
            raise ValueError
        text += chr(number)
    return text


def _field(der, n):
    at = _next(der, _next(der, 0)[1])[1]
    for _ in range(n + 1 if der[at] == 0xA0 else n):  # has it a version?
        at = _next(der, at)[2]
    return _next(der, at)


def _next(der, at):
    # -> the tag of the element there, and where its content begins and ends
    size = der[at + 1]
    begin = at + 2
    if size & 0x80:
        if size > 0x83:
            raise ValueError
        begin += size & 0x7F
        size = int.from_bytes(der[at + 2 : begin], "big")
    return der[at], begin, begin + size
