# http_files.py - http_dir: answers GET and HEAD with files of a folder. Loaded on demand; owns
# nothing; allocates a piece of the file, and the headers.
#
# A path is the names of files and folders below the folder. Names that begin with a dot, and links
# that leave the folder, do not exist; on MicroPython no links, as it cannot read one. A folder is
# its index.html. Where NAME.gz is beside NAME, or in its place, it is sent to who accepts gzip.
import binascii
import os

from slotmq.net.upgrade import has
from slotmq.platform import ondemand
from slotmq.platform.runtime import MICROPYTHON

_MODE_FOLDER = 0x4000
_MODE_FILE = 0x8000
_MODE_KIND = 0xF000
_STAT_SIZE = 6
_STAT_TIME = 8
_NAME_SHOWN = 64  # characters of a name, in the log
_FILE_PIECE = 16384
_FILE_PIECE_SMALL = 512
# Types by the name's end; others are application/octet-stream
_TYPES = """\
html text/html; charset=utf-8
htm text/html; charset=utf-8
js text/javascript; charset=utf-8
mjs text/javascript; charset=utf-8
css text/css; charset=utf-8
txt text/plain; charset=utf-8
md text/plain; charset=utf-8
csv text/csv; charset=utf-8
json application/json
map application/json
webmanifest application/manifest+json
wasm application/wasm
xml application/xml
pdf application/pdf
gz application/gzip
svg image/svg+xml
png image/png
jpg image/jpeg
jpeg image/jpeg
gif image/gif
webp image/webp
ico image/x-icon
woff2 font/woff2
"""


def answer(request, folder, target, headers):
    """Answer a request for this target."""
    path = _path(target)
    found = None
    if path is not None:
        where = folder.rstrip("/") + path
        is_folder = _stat(where)[0] & _MODE_KIND == _MODE_FOLDER
        if is_folder and path[-1] != "/" and _is_inside(folder, where):
            more = "Location: %s/\r\n" % target.split(b"?")[0].decode()
            request.respond(301, more, 0, b"")
            request.why = "HTTP, %r" % where
            return
        if path[-1] == "/":
            where += "index.html"
        found = _find(where, has(headers.get(b"accept-encoding"), b"gzip"))
    if not found or not _is_inside(folder, found[0]):
        request.refuse(404, "there is no such file")
        request.why += ", %r" % (path or target.split(b"?")[0].decode())[:_NAME_SHOWN]
        return
    request.why = "HTTP, %r" % where
    name, stat, is_zipped, is_varied = found
    etag = '"%x-%x%s"' % (stat[_STAT_SIZE], stat[_STAT_TIME], "-gz" if is_zipped else "")
    more = "ETag: %s\r\nCache-Control: no-cache\r\n" % etag
    if is_varied:
        more += "Vary: Accept-Encoding\r\n"
    known = [each.strip() for each in headers.get(b"if-none-match", b"").split(b",")]
    if b"*" in known or etag.encode() in known or b"W/" + etag.encode() in known:
        request.respond(304, more, None, b"")
    else:
        more += "Content-Type: %s\r\n" % _type(where)
        if is_zipped:
            more += "Content-Encoding: gzip\r\n"
        _send(request, name, stat[_STAT_SIZE], more)


def _send(request, name, size, more):
    try:
        if request.first[0] != b"HEAD":
            request.piece = bytearray(_FILE_PIECE_SMALL if ondemand.IS_SMALL else _FILE_PIECE)
            request.file = open(name, "rb")
    except OSError:
        request.refuse(404, "there is no such file")
        return
    except MemoryError:
        request.refuse(503, "too little memory")
        return
    request.respond(200, more, size, b"")


def _path(target):
    # The path in a request's target, with its escapes resolved; None: it is not possible.
    if target[:7].lower() == b"http://" or target[:8].lower() == b"https://":
        target = b"/" + target.split(b"/", 3)[3] if target.count(b"/") > 2 else b"/"
    target = target.split(b"?")[0].split(b"#")[0]
    parts = target.split(b"%")
    path = parts[0]
    try:
        for part in parts[1:]:
            if len(part) < 2:
                return None
            path += binascii.unhexlify(part[:2]) + part[2:]
        path = path.decode()
    except ValueError:  # UnicodeError, too
        return None
    if path[:1] != "/" or "\0" in path or "\\" in path or "//" in path:
        return None
    return None if "/." in path else path


def _find(where, takes_gzip):
    # -> the file's path, its stat, whether it is the .gz, whether that depends on the client.
    plain = _stat(where)
    zipped = _stat(where + ".gz")
    is_there = plain[0] & _MODE_KIND == _MODE_FILE
    has_zip = zipped[0] & _MODE_KIND == _MODE_FILE
    if has_zip and takes_gzip:
        return where + ".gz", zipped, True, True
    return (where, plain, False, has_zip) if is_there else None


def _stat(path):
    try:
        return os.stat(path)
    except OSError:
        return (0,)


def _is_inside(folder, path):
    # Links may lead anywhere; boards have none.
    if not MICROPYTHON:
        path = os.path.realpath(path)
        return path.startswith(os.path.realpath(folder).rstrip("/") + "/")
    if hasattr(os, "VfsPosix"):
        where = folder = folder.rstrip("/")
        for name in path[len(folder) + 1 :].split("/"):
            kinds = [each[1] for each in os.ilistdir(where or "/") if each[0] == name]
            if kinds not in ([_MODE_FILE], [_MODE_FOLDER]):  # 0: the file system does not say
                return False
            where += "/" + name
    return True


def _type(path):
    end = path.rpartition(".")[2].lower()
    for row in _TYPES.split("\n"):
        name, _, kind = row.partition(" ")
        if name and name == end:
            return kind
    return "application/octet-stream"
