# tls_context_cpython.py - the SSLContexts of listeners and of bridges on CPython. Loaded while a
# configuration that names certificates or keys is read. Owns nothing. Allocates.
import os
import ssl
import time

NOT_HERE = () if hasattr(ssl.SSLContext, "set_psk_client_callback") else ("bridge_psk",)
WHY_NOT = "shared keys need CPython 3.13"
_VERSIONS = {"tlsv1.2": ssl.TLSVersion.TLSv1_2, "tlsv1.3": ssl.TLSVersion.TLSv1_3}


def reason(error):
    """An error of TLS as text."""
    texts = [getattr(error, name, None) for name in ("verify_message", "reason", "strerror")]
    text = ([*filter(None, texts)] or error.args or ("failed",))[0]
    return str(text).split(" (_ssl.c")[0].replace("_", " ").lower().rstrip(".")


def lacking(key):
    """Why this Python cannot serve a key of a listener; None: it can."""
    method, text = _LATER.get(key, (None, None))
    return text if method and not hasattr(ssl.SSLContext, method) else None


# CPython's own default, which Debian's has not: of TLS 1.2 those with forward secrecy, none with
# SHA-1 or a short tag
_CIPHERS = "ECDH+AESGCM:ECDH+CHACHA20:ECDH+AES:DHE+AES:!aNULL:!eNULL:!aDSS:!SHA1:!AESCCM"
_PSK = "TLS with shared keys needs CPython 3.13; `certfile` and `keyfile` serve TLS"
# What older ones do not have: a method of SSLContext, and what to say without it
_LATER = {
    "psk_file": ("set_psk_server_callback", _PSK),
    "psk_hint": ("set_psk_server_callback", _PSK),
    "ciphers_tls1.3": (
        "set_ciphersuites",
        "this needs CPython 3.15; the ciphers of TLS 1.3 are all good, `ciphers` is for TLS 1.2",
    ),
}


def make_context(own):
    """-> the SSLContext of a listener with these settings, errors as (key, what was expected), and
    warnings as (key, text). None if there are errors."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.options |= ssl.OP_NO_RENEGOTIATION | ssl.OP_CIPHER_SERVER_PREFERENCE
    context.set_ciphers(_CIPHERS)
    errors = []
    steps = {
        "certfile": lambda path: _load_chain(context, path, own["keyfile"]),
        "cafile": lambda path: context.load_verify_locations(cafile=path),
        "capath": lambda path: context.load_verify_locations(capath=path),
        "crlfile": lambda path: _load_crl(context, path),
        "dhparamfile": context.load_dh_params,
        "psk_file": lambda path: _load_psk(context, path, own["psk_hint"]),
        "ciphers": context.set_ciphers,
        "ciphers_tls1.3": lambda names: context.set_ciphersuites(names),
    }
    for key in steps:
        if own.get(key):
            try:
                steps[key](own[key])
            except _Wrong as error:
                errors.append(error.args)
            except (OSError, ValueError) as error:
                errors.append((key, "%s (%s)" % (_EXPECTED[key], reason(error))))
    context.minimum_version = _VERSIONS[own.get("tls_version") or "tlsv1.2"]
    if own.get("require_certificate"):
        context.verify_mode = ssl.CERT_REQUIRED
    return None if errors else context, errors, _warnings(own) if not errors else []


_EXPECTED = {  # also of a bridge's keys
    "certfile": "a certificate and its key in PEM",
    "alpn": "1 to 255 bytes",
    "psk": "hexadecimal digits",
    "cafile": "a file with certificates in PEM",
    "capath": "a folder that `openssl rehash` has prepared",
    "crlfile": "a file with revocation lists in PEM",
    "dhparamfile": "a file of `openssl dhparam`",
    "psk_file": "a file of identities and keys",
    "ciphers": "names of ciphers, as `openssl ciphers` takes them",
    "ciphers_tls1.3": "names of ciphers of TLS 1.3 with colons between them",
}


def _load_psk(context, path, hint):
    # Unknown identities get no key.
    keys = {}
    with open(path, encoding="utf-8") as file:
        for at, line in enumerate(file, 1):
            line = line.strip()
            if line and line[0] != "#":
                identity, _, key = line.rpartition(":")
                try:
                    keys[identity] = bytes.fromhex(key)
                except ValueError:
                    identity = ""
                if not identity or not keys[identity]:
                    text = "lines IDENTITY:KEY, the key in hexadecimal digits, also in line %d"
                    raise _Wrong("psk_file", text % at)

    def key_of(identity):
        context.stream.identity = identity
        return keys.get(identity, b"")

    _only_shared_keys(context)
    context.set_psk_server_callback(key_of, hint)


def _only_shared_keys(context):
    # Of versions below 1.3, since Python serves these only.
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    context.set_ciphers("PSK")


class _Wrong(Exception):
    """(key, what was expected)"""


def _load_chain(context, certificate, key):
    # One of the two files is wrong: which?
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_verify_locations(certificate)
    except OSError as error:
        raise _Wrong("certfile", "a certificate in PEM (%s)" % reason(error))
    try:
        context.load_cert_chain(certificate, key, _no_password)
    except _Encrypted:
        raise _Wrong("keyfile", "a key without a password, since nobody could enter it")
    except OSError as error:
        if getattr(error, "reason", None) in ("KEY_VALUES_MISMATCH", "KEY_TYPE_MISMATCH"):
            raise _Wrong("keyfile", "the key of the certificate in certfile")
        raise _Wrong("keyfile", "a private key in PEM (%s)" % reason(error))


class _Encrypted(ValueError):
    pass


def _no_password():
    raise _Encrypted("it has a password, and nobody could enter it")


def _load_crl(context, path):
    context.load_verify_locations(cafile=path)
    if not context.cert_store_stats()["crl"]:
        raise ValueError("there is none")
    context.verify_flags |= ssl.VERIFY_CRL_CHECK_LEAF


def _warnings(own):
    # Is it the wrong time for the certificate?
    if not own.get("certfile"):
        return []
    try:
        dates = ssl._ssl._test_decode_cert(own["certfile"])
    except (AttributeError, OSError):
        return []  # another Python, which cannot tell
    now = time.time()
    for name, is_wrong in (("notBefore", 1), ("notAfter", -1)):
        if (ssl.cert_time_to_seconds(dates[name]) - now) * is_wrong > 0:
            text = "the certificate is not valid %s %s, and clients will refuse it"
            return [("certfile", text % ("before" if is_wrong > 0 else "after", dates[name]))]
    return []


def make_client_context(options):
    """The SSLContext of a bridge. ValueError: `KEY: what was expected`."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.options |= ssl.OP_NO_RENEGOTIATION
    context.check_hostname = not (options.bridge_insecure or options.bridge_psk)
    context.minimum_version = _VERSIONS[options.bridge_tls_version or "tlsv1.2"]
    steps = {
        "bridge_cafile": lambda path: context.load_verify_locations(cafile=path),
        "bridge_capath": lambda path: _trust_folder(context, path),
        "bridge_tls_use_os_certs": lambda _: context.load_default_certs(),
        "bridge_certfile": lambda path: context.load_cert_chain(
            path, options.bridge_keyfile, _no_password
        ),
        "bridge_ciphers": context.set_ciphers,
        "bridge_alpn": lambda text: context.set_alpn_protocols([text]),
        "bridge_psk": lambda key: _set_key(context, options.bridge_identity, bytes.fromhex(key)),
    }
    for key in steps:
        value = getattr(options, key)
        if value:
            try:
                steps[key](value)
            except (OSError, ValueError) as error:
                raise ValueError("%s: %s (%s)" % (key, _EXPECTED[key[7:]], reason(error)))
    return context


def _trust_folder(context, path):
    # OpenSSL reads the files later, by their names: 8 digits of a hash, a dot, a number.
    if not [name for name in os.listdir(path) if name[8:9] == "." and name[9:].isdigit()]:
        raise ValueError("no certificate has such a name")
    context.load_verify_locations(capath=path)


def _set_key(context, identity, key):
    _only_shared_keys(context)
    context.verify_mode = ssl.CERT_NONE
    context.set_psk_client_callback(lambda _hint: (identity, key))
