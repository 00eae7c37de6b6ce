# tls_context.py - a listener's SSLContext on MicroPython, and the name in a client's certificate.
# Loaded on demand; owns nothing. Control plane: allocates.
#
# mbedTLS takes a certificate and a key in PEM, or in DER: rp2 up to MicroPython 1.28 only the
# latter. In PEM a chain may follow the certificate.
import io

import tls

from slotmq.platform.runtime import const

_COMMON_NAME = b"\x06\x03\x55\x04\x03"  # its object identifier, in DER
_BMP = const(0x1E)  # a text of two bytes for each character


def make_context(own):
    """-> the SSLContext of a listener with these settings, errors as (key, what was expected), and
    no warnings. None if there are errors."""
    context = tls.SSLContext(tls.PROTOCOL_TLS_SERVER)
    key = "keyfile"
    try:
        context.load_cert_chain(_read(own["certfile"]), _read(own[key]))
        key = "cafile"
        if own.get(key):
            context.load_verify_locations(_read(own[key]))
    except ValueError as error:
        what = "a private key" if "key" in str(error) else "a certificate"
        if key == "keyfile" and "key" not in str(error):
            key = "certfile"
        return None, [(key, "%s in PEM or DER (%s)" % (what, error))], []
    if own.get("require_certificate"):
        context.verify_mode = tls.CERT_REQUIRED
    errors = []
    if own.get("ciphers"):
        found = [_found(name, context.get_ciphers()) for name in own["ciphers"].split(":")]
        if None in found:
            errors.append(("ciphers", "names with colons between them, of %s" % _names(context)))
        else:
            context.set_ciphers(found)
    key = "use_identity_as_username"
    if own.get(key):
        probe = context.wrap_socket(io.BytesIO(), server_side=True, do_handshake_on_connect=False)
        if not hasattr(probe, "getpeercert"):
            errors.append((key, "another firmware: this one keeps no certificate of a client"))
        probe.close()
    return None if errors else context, errors, []


def _read(path):
    with open(path, "rb") as file:
        return file.read()


def _openssl(name):
    # TLS-ECDHE-ECDSA-WITH-AES-128-GCM-SHA256 as OpenSSL and mosquitto write it
    for old, new in (("TLS-RSA-WITH-", ""), ("TLS-", ""), ("WITH-", ""), ("AES-", "AES"),
                     ("-CBC", ""), ("POLY1305-SHA256", "POLY1305")):  # fmt: skip
        name = name.replace(old, new)
    return name


def _found(name, names):
    for each in names:
        if name in (each, _openssl(each)):
            return each
    return None


def _names(context):
    return ", ".join([_openssl(name) for name in context.get_ciphers() if "ECDHE-ECDSA" in name])


def common_name(der):
    """The first common name in the subject of a certificate in DER [RFC 5280, 4.1]; "": none."""
    if not der:
        return ""
    at = _next(der, _next(der, 0)[1])[1]  # into the certificate, and its part that is signed
    # Before the subject: perhaps the version, then number, algorithm, issuer and dates
    for _ in range(5 if der[at] == 0xA0 else 4):
        at = _next(der, at)[2]
    _, at, end = _next(der, at)
    while at < end:  # sets of pairs of an identifier and a text
        _, inner, at = _next(der, at)
        while inner < at:
            _, begin, inner = _next(der, inner)
            value = _next(der, begin)[2]
            if der[begin:value] == _COMMON_NAME:
                kind, begin, end = _next(der, value)
                return _text(kind, der[begin:end])
    return ""


def _text(kind, data):
    try:
        return (data[1::2] if kind == _BMP else data).decode()
    except UnicodeError:
        return ""


def _next(der, at):
    # -> the tag of the element there, and where its content begins and ends
    size = der[at + 1]
    begin = at + 2
    if size & 0x80:
        begin += size & 0x7F
        size = int.from_bytes(der[at + 2 : begin], "big")
    return der[at], begin, begin + size
