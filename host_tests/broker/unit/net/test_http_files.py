"""http_dir: files of a folder, on the port of a WebSocket."""
# ruff: noqa: PTH102, PTH123, PTH211 - MicroPython has no pathlib

import os
import unittest

from scratch import path
from stream_case import every
from web_client import Web, request

from slotmq.net import http_files
from slotmq.platform.runtime import MICROPYTHON

INDEX = b"<!doctype html>index"
SCRIPT = bytes(range(256)) * 200


MISSING = """/no.html /only/ /only /index.html/ /app * index.html
/../outside.txt /%2e%2e/outside.txt /sub/../../outside.txt /..%2foutside.txt
/.hidden /%2ehidden //outside.txt /\\..\\outside.txt /%5c..%5coutside.txt
/% /%4 /%zz /%00 /index.html%00.txt /%ff /sub/./index.html"""


class Kinds:
    """Module os with this kind for index.html; None: it is not in the list of its folder."""

    VfsPosix = None
    stat = staticmethod(os.stat)
    path = getattr(os, "path", None)

    def __init__(self, kind):
        self.kind = kind

    def ilistdir(self, folder):
        for name, kind, *_ in os.ilistdir(folder):
            if name != "index.html":
                yield name, kind
            elif self.kind is not None:
                yield name, self.kind


class Case(unittest.TestCase):
    def setUp(self):
        self.folder = path()
        os.mkdir(self.folder)
        for name in ("www", "www/sub", "www/only"):
            os.mkdir(self.folder + "/" + name)
        self.put("www/index.html", INDEX)
        self.put("www/app.js", SCRIPT)
        self.put("www/app.js.gz", b"zipped script")
        self.put("www/only.css.gz", b"zipped style")
        self.put("www/a b.txt", b"blank")
        self.put("www/.hidden", b"secret")
        self.put("www/empty.txt", b"")
        self.put("www/sub/index.html", b"sub")
        self.put("outside.txt", b"secret")
        self.web = Web({"http_dir": self.folder + "/www"})

    def put(self, name, data):
        with open(self.folder + "/" + name, "wb") as file:
            file.write(data)

    def ask(self, target, *headers, method="GET", stream=None):
        first = f"{method} {target} HTTP/1.1"
        one = self.web.come(request("Host: a", *headers, first=first), stream, 20)
        for _ in range(2000):
            if one.stream.closed:
                break
            self.web.world.turn()
        self.assertTrue(one.stream.closed)
        found = [line.decode().split(": ", 1) for line in one.lines[1:]]
        one.fields = {name.lower(): value for name, value in found}
        self.assertEqual(one.fields["x-content-type-options"], "nosniff")
        self.assertEqual(one.fields["x-frame-options"], "SAMEORIGIN")
        of_file = "" if one.status in (200, 304) else "default-src 'none'; "
        policy = one.fields["content-security-policy"]
        self.assertEqual(policy, of_file + "frame-ancestors 'self'")
        return one

    def gets(self, target, data, kind, *headers):
        one = self.ask(target, *headers)
        self.assertEqual((one.status, one.body), (200, data))
        self.assertEqual(one.fields["content-type"], kind)
        self.assertEqual(int(one.fields["content-length"]), len(data))
        return one


# What `mpremote romfs` makes of a folder www with index.html
ROMFS = b'\xd2\xcd1$\x04"\x03www\x05\x1c\nindex.html\x02\x0fin the firmware'


class TestRom(Case):
    """Files that are read where they lie, such as those in a firmware's image."""

    def test_a_page_in_a_romfs(self):
        if not MICROPYTHON:
            return
        import vfs

        vfs.mount(vfs.VfsRom(ROMFS), "/rom")
        self.web = Web({"http_dir": "/rom/www"})
        one = self.gets("/", b"in the firmware", "text/html; charset=utf-8")
        again = self.ask("/index.html", "If-None-Match: " + one.fields["etag"])
        self.assertEqual((again.status, again.body), (304, b""))
        self.assertEqual(self.ask("/other.html").status, 404)


class TestFiles(Case):
    def test_a_file_and_a_folder(self):
        self.gets("/index.html", INDEX, "text/html; charset=utf-8")
        self.gets("/", INDEX, "text/html; charset=utf-8")
        self.gets("/sub/?query", b"sub", "text/html; charset=utf-8")
        self.gets("/app.js?v=1#here", SCRIPT, "text/javascript; charset=utf-8")
        self.gets("/a%20b.txt", b"blank", "text/plain; charset=utf-8")
        self.gets("http://broker/empty.txt", b"", "text/plain; charset=utf-8")

    def test_a_folder_without_its_last_slash(self):
        one = self.ask("/sub?a=b")
        self.assertEqual((one.status, one.fields["location"]), (301, "/sub/"))

    def test_head_has_no_body(self):
        one = self.ask("/app.js", method="HEAD")
        self.assertEqual((one.status, one.body), (200, b""))
        self.assertEqual(one.fields["content-length"], str(len(SCRIPT)))

    def test_gzip_as_it_lies(self):
        kind = "text/javascript; charset=utf-8"
        one = self.gets("/app.js", b"zipped script", kind, "Accept-Encoding: br, gzip")
        self.assertEqual(one.fields["content-encoding"], "gzip")
        self.assertEqual(one.fields["vary"], "Accept-Encoding")
        one = self.gets("/app.js", SCRIPT, kind, "Accept-Encoding: br")
        self.assertFalse("content-encoding" in one.fields)
        self.assertEqual(one.fields["vary"], "Accept-Encoding")
        style = "text/css; charset=utf-8"
        self.gets("/only.css", b"zipped style", style, "Accept-Encoding: gzip")
        self.assertEqual(self.ask("/only.css").status, 404)
        self.gets("/app.js.gz", b"zipped script", "application/gzip")

    def test_etag(self):
        tag = self.ask("/index.html").fields["etag"]
        for value in (tag, f'"other", {tag}', "*", "W/" + tag):
            one = self.ask("/index.html", "If-None-Match: " + value)
            self.assertEqual((one.status, one.body, one.fields["etag"]), (304, b"", tag))
        self.assertEqual(self.ask("/index.html", 'If-None-Match: "other"').status, 200)
        zipped = self.ask("/app.js", "Accept-Encoding: gzip").fields["etag"]
        self.assertNotEqual(zipped, self.ask("/app.js").fields["etag"])
        self.put("www/index.html", b"another length")
        self.assertEqual(self.ask("/index.html", "If-None-Match: " + tag).status, 200)

    def test_what_is_not_there(self):
        for target in MISSING.split():
            with self.subTest(target=target):
                one = self.ask(target)
                wanted = 301 if target == "/only" else 404
                self.assertEqual(one.status, wanted)
                self.assertFalse(b"secret" in one.body)

    def test_the_log_names_it_once_a_minute_and_without_its_query(self):
        lines = []
        broker = self.web.broker
        broker.log = lambda bit, line: lines.append(line.partition("closed: ")[2])
        broker.log_mask = 4
        for _ in range(3):
            self.ask("/none.html?token=secret")
        self.ask("/other%20one.html")
        why = "protocol error (HTTP 404: there is no such file, %r)."
        self.assertEqual(lines, [why % "/none.html", why % "/other one.html"])
        self.web.world.turn(601, ms=100)
        self.ask("/none.html")
        self.assertEqual(lines[2:], [why % "/none.html"])

    def test_links(self):
        if MICROPYTHON:
            return  # it makes no links: host_tests/broker/websocket/test_clients.py
        os.symlink(self.folder + "/outside.txt", self.folder + "/www/link.txt")
        os.symlink(self.folder, self.folder + "/www/up")
        os.symlink("index.html", self.folder + "/www/inside.html")
        os.symlink("sub", self.folder + "/www/inside")
        self.assertEqual([self.ask(path).status for path in ("/up", "/up/")], [404] * 2)
        self.assertEqual([self.ask(path).status for path in ("/inside", "/inside/")], [301, 200])
        self.assertEqual(self.ask("/link.txt").status, 404)
        self.assertEqual(self.ask("/up/outside.txt").status, 404)
        self.assertEqual(self.ask("/inside.html").status, 200)

    def test_what_the_file_system_calls_no_file_is_not_served(self):
        """On MicroPython links are known by the kind that a folder's list has."""
        for kind, status in ((0x8000, 200), (0, 404), (0xA000, 404), (None, 404)):
            http_files.os = Kinds(kind)
            try:
                found = self.ask("/sub/index.html").status
            finally:
                http_files.os = os
            self.assertEqual(found, status if MICROPYTHON else 200)

    def test_a_slow_reader(self):
        for size in (1, 700):
            stream = self.web.stream(write=lambda n, size=size: min(n, size))
            target = "/app.js" if size > 1 else "/index.html"
            one = self.ask(target, stream=stream)
            self.assertEqual(one.body, SCRIPT if size > 1 else INDEX)

    def test_a_reader_that_reads_nothing_is_timed_out(self):
        self.web = Web({"http_dir": self.folder + "/www"}, connect_timeout=2)
        stream = self.web.stream(write=lambda n: None)
        one = self.web.come(request("Host: a", first="GET /app.js HTTP/1.1"), stream)
        self.web.world.turn(30, ms=100)
        self.assertTrue(one.stream.closed)
        self.assertEqual(self.web.broker.conns.count, 0)

    def test_other_clients_go_on_meanwhile(self):
        stream = self.web.stream(write=every(2, None, 100))
        slow = self.web.come(request("Host: a", first="GET /app.js HTTP/1.1"), stream)
        client = self.web.world.client("other")
        client.send(b"\xc0\0")
        self.web.world.turn(2)
        self.assertEqual(client.packets(), [b"\xd0\0"])
        self.assertFalse(slow.stream.closed)
        slow.stream.ended = True
        self.web.world.turn(2)
        self.assertTrue(slow.stream.closed)

    def test_what_follows_a_request_is_not_answered(self):
        first = request("Host: a", first="GET /index.html HTTP/1.1")
        one = self.web.come(first + first, turns=20)
        self.assertEqual(one.body, INDEX)
        self.assertTrue(one.stream.closed)
