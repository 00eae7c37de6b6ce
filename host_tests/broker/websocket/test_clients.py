"""Clients that others have written: paho, `websockets` of PyPI, MQTT.js; requests for files."""

import http.client
import socket
import ssl
import subprocess
from pathlib import Path

import pytest
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import ClientConnection, connect
from websockets.typing import Subprotocol

from slotmq_dev.peers import node

from ..tls.client import ends
from ..wire import codec
from .conftest import PAGE, Web

SCRIPT = Path(__file__).with_name("mqttjs.cjs")
CONNACK = b"\x20\x02\0\0"
PINGRESP = b"\xd0\0"
TIMEOUT_S = 20
SCHEMES = pytest.mark.parametrize("scheme", ["ws", "wss"])


def port(web: Web, scheme: str) -> int:
    return {"ws": web.ws, "wss": web.wss, "mqtts": web.tls}[scheme]


def opened(web: Web, scheme: str = "ws", protocol: str = "mqtt") -> ClientConnection:
    number = port(web, scheme)
    trusted = ssl.create_default_context(cafile=web.certs / "ca.crt")
    return connect(
        f"{scheme}://localhost:{number}/mqtt",
        subprotocols=[Subprotocol(protocol)],
        ssl=trusted if scheme == "wss" else None,
        sock=socket.create_connection(("127.0.0.1", number), TIMEOUT_S),
    )


class TestWebsocketsOfPyPI:
    @pytest.mark.spec("MQTT-6.0.0-2", "MQTT-6.0.0-4", of="5.0")
    @pytest.mark.spec("MQTT-6.0.0-2", "MQTT-6.0.0-4")
    @SCHEMES
    def test_packets_pings_and_the_end(self, web: Web, scheme: str) -> None:
        with opened(web, scheme) as one:
            assert one.subprotocol == "mqtt"
            one.send(codec.connect("pypi"))
            assert one.recv(TIMEOUT_S) == CONNACK
            one.send(codec.subscribe(1, (f"{scheme}/a", 1)))
            assert one.recv(TIMEOUT_S) == b"\x90\x03\0\1\1"
            assert one.ping(b"payload").wait(TIMEOUT_S)
            for size in (0, 1, 100, 125, 126, 5000):
                wanted = codec.publish(f"{scheme}/a", bytes(size))
                one.send([wanted[:2], wanted[2:9], wanted[9:]])  # fragments of one message
                got = b""
                while len(got) < len(wanted):
                    got += bytes(one.recv(TIMEOUT_S))  # type: ignore[arg-type]
                assert got == wanted
            for frame in (wanted[:3], wanted[3:] + codec.PINGREQ):  # they end within packets
                one.send(frame)
            got = b""
            while len(got) < len(wanted) + 2:
                got += bytes(one.recv(TIMEOUT_S))  # type: ignore[arg-type]
            assert got in (wanted + PINGRESP, PINGRESP + wanted)
            one.send(codec.DISCONNECT)
            with pytest.raises(ConnectionClosed) as closed:
                one.recv(TIMEOUT_S)
            assert closed.value.rcvd
            assert closed.value.rcvd.code == 1000

    def test_a_close_of_the_client(self, web: Web) -> None:
        with opened(web) as one:
            one.send(codec.connect("closes"))
            assert one.recv(TIMEOUT_S) == CONNACK
            one.close(4001, "enough")
            assert one.close_code == 4001

    @pytest.mark.spec("MQTT-6.0.0-1", of="5.0")
    @pytest.mark.spec("MQTT-6.0.0-1")
    def test_text_is_refused(self, web: Web) -> None:
        with opened(web) as one:
            one.send("text")
            with pytest.raises(ConnectionClosed) as closed:
                one.recv(TIMEOUT_S)
            assert closed.value.rcvd
            assert closed.value.rcvd.code == 1003

    def test_another_protocol_is_refused(self, web: Web) -> None:
        with pytest.raises(InvalidStatus) as refused, opened(web, protocol="chat"):
            pass
        assert refused.value.response.status_code == 400
        web.log("HTTP 400: no Sec-WebSocket-Protocol: mqtt")


class TestMqttJs:
    @pytest.mark.parametrize("scheme", ["ws", "wss", "mqtts"])
    def test_messages_and_a_reconnect(self, web: Web, scheme: str) -> None:
        """`mqtts` is TLS without WebSocket."""
        command, environment = node.command(SCRIPT)
        url = f"{scheme}://localhost:{port(web, scheme)}/mqtt"
        done = subprocess.run(
            [*command, url, str(web.certs / "ca.crt")],
            env=environment,
            capture_output=True,
            text=True,
            timeout=TIMEOUT_S,
            check=False,
        )
        assert (done.returncode, done.stdout.strip()) == (0, "ok"), done.stderr


class TestFiles:
    @SCHEMES
    def test_a_page(self, web: Web, scheme: str) -> None:
        number = port(web, scheme)
        if scheme == "wss":
            trusted = ssl.create_default_context(cafile=web.certs / "ca.crt")
            client: http.client.HTTPConnection = http.client.HTTPSConnection(
                "localhost", number, timeout=TIMEOUT_S, context=trusted
            )
        else:
            client = http.client.HTTPConnection("localhost", number, timeout=TIMEOUT_S)
        client.request("GET", "/")
        answer = client.getresponse()
        assert (answer.status, answer.read().decode()) == (200, PAGE)
        tag = answer.headers["etag"]
        client.request("GET", "/", headers={"If-None-Match": tag})
        assert client.getresponse().status == 304
        for outside in ("/../slotmq.conf", "/link.txt", "/sub/up", "/sub/up/secret.txt"):
            client.request("GET", outside)
            assert client.getresponse().status == 404, outside
        client.close()

    def test_mqtt_and_tls_on_the_wrong_port(self, web: Web) -> None:
        for first, why in (
            (codec.connect("x"), "MQTT without WebSocket"),
            (b"\x16\3\1", "TLS, and"),
        ):
            with socket.create_connection(("127.0.0.1", web.ws), TIMEOUT_S) as sock:
                sock.sendall(first)
                assert sock.recv(100).startswith(b"HTTP/1.1 400 ")
            web.log(why)

    def test_a_failed_handshake_is_named(self, web: Web) -> None:
        with socket.create_connection(("127.0.0.1", web.wss), TIMEOUT_S) as sock:
            sock.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
            assert ends(sock)
            web.log(f"127.0.0.1:{sock.getsockname()[1]} closed: lost (TLS: ")

    def test_a_folder_is_redirected(self, web: Web) -> None:
        with socket.create_connection(("127.0.0.1", web.ws), TIMEOUT_S) as sock:
            sock.sendall(b"GET /sub HTTP/1.1\r\nHost: localhost\r\n\r\n")
            assert sock.recv(100).startswith(b"HTTP/1.1 301 ")
            web.log(f"127.0.0.1:{sock.getsockname()[1]} closed: left (HTTP, ")
