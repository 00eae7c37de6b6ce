"""WebSocket and a page on the emulated RP2040: from its own flash, over PPP."""

import http.client
import socket

import pytest
from websockets.sync.client import connect
from websockets.typing import Subprotocol

from host_tests.broker.wire import codec
from slotmq_tools.deploy.repl import Repl

from .conftest import ANSWER_S, PORT, Deployed

WEB = 8080
MORE_PORTS = (WEB,)
pytestmark = pytest.mark.timeout(600)
CONF = f"""\
listener {PORT}
listener {WEB}
protocol websockets
http_dir /www
allow_anonymous true
mqtt_versions 3
limit message_bytes 4096
"""
PAGE = b"<!doctype html><title>page</title>" * 40


def test_a_page_and_its_messages(board: Deployed) -> None:
    with Repl(board.board.device) as repl:
        repl.write("/www/index.html", PAGE)
    board.deploy(CONF)
    host, port = board.board.reach(WEB)
    client = http.client.HTTPConnection(host, port, timeout=ANSWER_S)
    client.request("GET", "/")
    answer = client.getresponse()
    assert (answer.status, answer.read()) == (200, PAGE)
    assert answer.headers["Content-Type"] == "text/html; charset=utf-8"
    client.close()
    client.request("GET", "/", headers={"If-None-Match": answer.headers["ETag"]})
    assert client.getresponse().status == 304
    client.close()

    with connect(
        f"ws://{host}:{port}/mqtt",
        subprotocols=[Subprotocol("mqtt")],
        sock=socket.create_connection((host, port), ANSWER_S),
        open_timeout=ANSWER_S,
    ) as one:
        one.send(codec.connect("browser"))
        assert one.recv(ANSWER_S) == b"\x20\2\0\0"
        one.send(codec.subscribe(1, ("a", 0)))
        assert one.recv(ANSWER_S) == b"\x90\3\0\1\0"
        board.connect("sensor").publish("a", bytes(300))
        assert one.recv(ANSWER_S) == codec.publish("a", bytes(300))
        one.send(codec.publish("a", b"from the page"))
        assert one.recv(ANSWER_S) == codec.publish("a", b"from the page")
