# tls_listeners.py - the keys of a listener that speaks TLS or WebSocket. Loaded on demand by
# config/mosquitto_conf.py; owns nothing; allocates.
#
# The kinds of values are as those of config/rare_kinds.py. Each notes the place of its line in the
# listener's options, as options[PLACES][key]. At the file's end listener_() checks them
# together and loads the files. It puts the SSLContext there, as options["tls"]. Where a client's
# user comes from its certificate, options["certificate"] is 1 (common name) or 2 (the whole
# subject), and the listener has no password_file. A listener with any of the keys of TLS never
# ends as plain MQTT.
#
# mbedTLS, on MicroPython, serves the keys in _OF_ALL. A board, and any small heap, needs limit
# tls_connections besides; its files are in DER, as deploy puts them there.
import hashlib
import os
import sys

from slotmq.config.mosquitto_conf import OF_BOARD
from slotmq.constants import PLACES, SUBJECT
from slotmq.platform import ondemand
from slotmq.platform.runtime import MICROPYTHON

_COMMON_NAME = 1
_OF_PSK = "psk_file psk_hint ciphers use_identity_as_username"
_OF_ALL = (
    "certfile keyfile cafile require_certificate tls_version ciphers use_identity_as_username"
)
# Keys that say what a certificate of a client is for, and need require_certificate
_OF_CLIENTS = ("use_identity_as_username", "use_subject_as_username", "crlfile")
_OF_WEB = ("websockets_origin", "http_dir", "protocol")


def is_of_board(reader):
    return reader.is_foreign == OF_BOARD or MICROPYTHON and sys.platform != "linux"


def _note(reader):
    text = None
    if (MICROPYTHON or is_of_board(reader)) and reader.key not in _OF_ALL.split():
        text = "with TLS this needs CPython"
    elif not MICROPYTHON:
        text = ondemand.take("platform.tls_context_cpython", 0).lacking(reader.key)
    if text:
        ondemand.take("config.other_keys", 0).refuse(reader, reader.key, text)
    _place(reader)


def _place(reader):
    reader._section[4].setdefault(PLACES, {})[reader.key] = reader.at


def flag_(reader, bounds, value):
    if value not in ("false", "0"):
        _note(reader)
    return reader.flag(bounds, value)


def word_(reader, bounds, value):
    _note(reader)
    return reader.word(bounds[:1] if MICROPYTHON or is_of_board(reader) else bounds, value)


def text_(reader, bounds, value):
    _note(reader)
    return reader.text(bounds, value)


def file_(reader, bounds, value):
    _note(reader)
    if not reader.is_foreign and value:
        try:
            with open(value, "rb") as file:
                file.read(1)  # MicroPython opens a folder, too
        except OSError as error:
            raise ValueError("a file that can be read (%s)" % error)
    return reader.text(bounds, value)


def folder_(reader, bounds, value):
    _note(reader)
    return _folder(reader, value)


def _folder(reader, value):
    if not reader.is_foreign and value:
        try:
            os.listdir(value)
        except OSError as error:
            raise ValueError("a folder that can be read (%s)" % error)
    return reader.text((), value)


def protocol_(reader, bounds, value):
    """protocol"""
    _place(reader)
    return reader.word(bounds, value)


def origins_(reader, bounds, value):
    """websockets_origin; several add up."""
    _place(reader)
    if "://" not in value or value[-1] == "/":
        raise ValueError("an origin as browsers send it, such as http://192.168.1.5:8080")
    return reader._section[4].get("websockets_origin", ()) + (value,)


def files_(reader, bounds, value):
    """http_dir"""
    _place(reader)
    return _folder(reader, value)


def warn_of_files(reader):
    """At the file's end: everybody can read what an http_dir has."""
    settings = reader.settings
    files = [("the configuration", reader.names[0]), ("password_file", settings.password_file)]
    files += [("acl_file", settings.acl_file)]
    for each in settings.listeners:
        files += [(key, each[3].get(key)) for key in ("keyfile", "psk_file", "acl_file")]
    if settings.persistence:
        location = getattr(settings, "persistence_location", None)
        files.append(("persistence_location", location or os.getcwd()))
    files += [("record_location", getattr(settings, "record_location", None))]
    files += [("log_dest", each[5:].strip()) for each in settings.log_dest if each[:5] == "file "]
    for folder in {each[3].get("http_dir") for each in settings.listeners}:
        for key, path in files if folder else ():
            if path and (_whole(path) + "/").startswith(_whole(folder) + "/"):
                text = "http_dir %s: everybody can read %s %s: it belongs elsewhere"
                text %= folder, key, path
                if text not in reader.warnings:
                    reader.warnings.append(text)


def _whole(path):
    if not MICROPYTHON:
        return os.path.realpath(path).rstrip("/")
    return (path if path[:1] == "/" else os.getcwd() + "/" + path).rstrip("/")


def _check_web(reader, options, places):
    is_web = options.get("protocol") == "websockets"
    for key in _OF_WEB:
        at = places.pop(key, None)
        if at is not None and not is_web and key != "protocol":
            reader.fail(at, key, "protocol websockets on the same listener")
    if is_web and not hasattr(hashlib, "sha1"):
        reader.fail(at, key, "mqtt; this MicroPython has no SHA-1, which websockets need")


def listener_(reader, bounds, options):
    """At the file's end: check the keys of one listener together, and load its files."""
    places = options.pop(PLACES)
    _check_web(reader, options, places)
    if not places:
        return
    first = next(iter(places))

    def fail(key, text):
        reader.fail(places.get(key, places[first]), key if key in places else first, text)

    before = reader.count
    has_psk = "psk_file" in places or "psk_hint" in places
    if has_psk:
        for key in places:
            if key not in _OF_PSK.split():
                fail(key, "another listener for psk_file, without certificates and TLS 1.3")
    wanted = ("psk_file", "psk_hint") if has_psk else ("certfile", "keyfile")
    lacks = [key for key in wanted if key not in places]
    if lacks:
        text = "%s on the same listener, which never serves plain MQTT instead"
        fail(first, text % " and ".join(lacks))
    elif (is_of_board(reader) or ondemand.IS_SMALL) and not reader.limits.tls_connections:
        fail(first, "limit tls_connections, of which `slotmq budget` says how many fit the heap")
    for key in _OF_CLIENTS:
        if options.get(key) and not (options.get("require_certificate") or has_psk):
            fail(key, "require_certificate true on the same listener")
    if options.get("require_certificate") and not (options.get("cafile") or options.get("capath")):
        fail("require_certificate", "cafile or capath on the same listener")
    if options.get("use_identity_as_username") or options.get("use_subject_as_username"):
        by_name = options.get("use_identity_as_username")
        options["certificate"] = _COMMON_NAME if by_name else SUBJECT
        options["password_file"] = None
    options["tls"] = True
    failures = [each for each in reader.failures if each[0] in places.values()]
    if reader.count == before and not failures and _are_here(reader, options):
        if MICROPYTHON:
            made = ondemand.take("net.tls_context", 0).make_context(options)
        else:
            made = ondemand.take("platform.tls_context_cpython", 0).make_context(options)
        options["tls"], errors, warnings = made
        for key, text in errors:
            fail(key, text)
        for key, text in warnings:
            reader.warnings.append("%s: %s: %s" % (reader.place(places[key]), key, text))


def _are_here(reader, options):
    # Are its files on this computer? The configuration may be that of another one.
    return not reader.is_foreign or not missing(options)


def missing(options):
    """The files and folders that these settings of a listener name and that are not here."""
    names = ("certfile", "keyfile", "cafile", "capath", "crlfile", "dhparamfile", "psk_file")
    paths = [options[key] for key in names if options.get(key)]
    return [path for path in paths if not exists(path)]


def exists(path):
    try:
        os.stat(path)
    except OSError:
        return False
    return True
