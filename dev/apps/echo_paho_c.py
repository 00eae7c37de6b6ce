"""An application with Paho C, through ctypes: echo_paho_c.py LIBRARY URL CA"""

import ctypes
import sys

LIBRARY, URL, CA = sys.argv[1:]
_TIMEOUT_MS = 10_000


class _TlsOptions(ctypes.Structure):
    _fields_ = [
        ("id", ctypes.c_char * 4),
        ("version", ctypes.c_int),
        ("trust_store", ctypes.c_char_p),
        ("key_store", ctypes.c_char_p),
        ("private_key", ctypes.c_char_p),
        ("password", ctypes.c_char_p),
        ("ciphers", ctypes.c_char_p),
        ("checks_server", ctypes.c_int),
    ]


class _Options(ctypes.Structure):
    # Of version 1, the first with TLS
    _fields_ = [
        ("id", ctypes.c_char * 4),
        ("version", ctypes.c_int),
        ("keep_alive", ctypes.c_int),
        ("clean", ctypes.c_int),
        ("reliable", ctypes.c_int),
        ("will", ctypes.c_void_p),
        ("user", ctypes.c_char_p),
        ("password", ctypes.c_char_p),
        ("connect_timeout", ctypes.c_int),
        ("retry", ctypes.c_int),
        ("tls", ctypes.c_void_p),
        ("more", ctypes.c_byte * 256),
    ]


class _Message(ctypes.Structure):
    _fields_ = [
        ("id", ctypes.c_char * 4),
        ("version", ctypes.c_int),
        ("size", ctypes.c_int),
        ("payload", ctypes.c_void_p),
        ("qos", ctypes.c_int),
    ]


def checked(code: int) -> None:
    """0: MQTTCLIENT_SUCCESS"""
    if code:
        raise SystemExit(f"Paho C: {code}")


def main() -> None:
    """Answer each request."""
    library = ctypes.CDLL(LIBRARY)
    client = ctypes.c_void_p()
    url = URL.replace("mqtts:", "ssl:").replace("mqtt:", "tcp:").encode()
    checked(library.MQTTClient_create(ctypes.byref(client), url, b"paho_c", 1, None))
    tls = _TlsOptions(b"MQTS", 0, CA.encode(), checks_server=1)
    options = _Options(b"MQTC", 1, 60, 1, 1, connect_timeout=30, retry=20)
    options.tls = ctypes.cast(ctypes.pointer(tls), ctypes.c_void_p) if CA else None
    checked(library.MQTTClient_connect(client, ctypes.byref(options)))
    for name, qos in ((b"app/kept/+", 0), (b"app/in", 1)):
        checked(library.MQTTClient_subscribe(client, name, qos))
    kept = set()
    while True:
        topic, size = ctypes.c_char_p(), ctypes.c_int()
        message = ctypes.POINTER(_Message)()
        got = ctypes.byref(topic), ctypes.byref(size), ctypes.byref(message)
        checked(library.MQTTClient_receive(client, *got, ctypes.c_ulong(_TIMEOUT_MS)))
        if not message or topic.value is None:
            continue
        if topic.value.startswith(b"app/kept/"):
            kept.add(topic.value)
            continue
        text = ctypes.string_at(message.contents.payload, message.contents.size)
        text += b" %d" % len(kept)
        args = b"app/out", len(text), text, 1, 0, None
        checked(library.MQTTClient_publish(client, *args))


main()
