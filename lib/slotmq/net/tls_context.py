# tls_context.py - the SSLContexts of listeners and of bridges on MicroPython. Loaded on demand;
# owns nothing. Control plane: allocates.
#
# mbedTLS takes a certificate and a key in PEM, or in DER: rp2 up to MicroPython 1.28 only the
# latter. In PEM a chain may follow the certificate.
import io

import tls

from slotmq.platform import ondemand

NOT_HERE = (
    "bridge_capath", "bridge_insecure", "bridge_alpn", "bridge_ciphers", "bridge_psk",
    "bridge_tls_use_os_certs",
)  # fmt: skip
WHY_NOT = "with TLS this needs CPython"


def make_context(own):
    """-> the SSLContext of a listener with these settings, errors as (key, what was expected), and
    warnings as (key, text). None if there are errors."""
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
    errors, warnings = [], []
    if not ondemand.IS_SMALL:
        own_files = _read(own["certfile"]), _read(own["keyfile"])
        errors, warnings = ondemand.take("platform.x509", 0).check(*own_files)
    _drop_weak(context)
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
    return None if errors else context, errors, warnings


def _read(path):
    with open(path, "rb") as file:
        return file.read()


def make_client_context(options):
    """The SSLContext of a bridge. ValueError: `KEY: what was expected`."""
    if options.bridge_tls_version == "tlsv1.3":
        raise ValueError("bridge_tls_version: tlsv1.2; 1.3 needs CPython")
    context = tls.SSLContext(tls.PROTOCOL_TLS_CLIENT)
    key = "bridge_cafile"
    try:
        context.load_verify_locations(_read(options.bridge_cafile))
        key = "bridge_certfile"
        if options.bridge_certfile:
            context.load_cert_chain(_read(options.bridge_certfile), _read(options.bridge_keyfile))
    except (OSError, ValueError) as error:
        raise ValueError("%s: certificates and key in PEM (%s)" % (key, error))
    context.verify_mode = tls.CERT_REQUIRED
    _drop_weak(context)
    return context


def _drop_weak(context):
    # No ciphers that are weak, keep a key for all connections, or need a shared one.
    context.set_ciphers([name for name in context.get_ciphers() if _is_good(name)])


def _is_good(name):
    if name.endswith("CBC-SHA") or not ("DHE-" in name or "TLS1-3-" in name):
        return False
    return not [bad for bad in ("CCM-8", "CAMELLIA", "ARIA", "PSK") if bad in name]


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
