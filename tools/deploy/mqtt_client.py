"""An MQTT client (paho) that tests a broker after a deploy, and reads $SYS."""

import re
import socket
import ssl
import time
from contextlib import suppress
from dataclasses import dataclass, field
from queue import Empty, Queue
from typing import Any

import paho.mqtt.client as paho
from paho.mqtt.enums import CallbackAPIVersion, MQTTErrorCode

from ..errors import ToolError

_TIMEOUT_S = 15
_SYS_MAX_S = 30  # longest time of receiving $SYS
_SYS_MAX = 10_000  # topics of it
_QUEUED, _LONGEST = 1000, 65536  # messages that wait to be handled, and bytes of each: no more
_ANSWER_MAX = 2048  # bytes of safe mode's answer
_AFTER_ACK_S = 5  # longest time between a PUBACK and the message
_SHOWN = 60  # bytes of a wrong answer
_TOPIC = "slotmq/deploy"
_PAYLOAD = b"is it there?"
_FORBIDDEN = "the acl_file, a hook (`may_publish`) or a limit for publishing forbids it"
# The topic with the limit of a figure, both after $SYS/broker/. Besides, the limit of each
# slots/<table>/high is slots/<table>/limit.
_LIMITS = {
    "clients/connected": "slots/connections/limit",
    "clients/active": "slots/connections/limit",
    "clients/total": "slots/sessions/limit",
    "clients/maximum": "slots/sessions/limit",
    "messages/stored": "slots/messages/limit",
    "store/messages/count": "slots/messages/limit",
    "store/messages/bytes": "store/messages/bytes/limit",
    "subscriptions/count": "slots/subscriptions/limit",
    "retained messages/count": "slots/retained/limit",
    "heap/current": "heap/size",
}
_NO_SYS = (
    "the broker sent nothing of $SYS: `sys_interval` is 0, or the hook `may_subscribe` forbids"
    " it for this client"
)
_NOT_AUTHORIZED = ("Not authorized", "Bad user name or password")
_FULL = " (all its connections are in use; try again when a client has disconnected)"
# In the answer of firmware/slotmq_run/safe.py to every connection
_SAFE_MODE = re.compile(rb"slotmq: safe mode: (.*)")


def _send_at_once(sock: Any) -> None:
    # Nagle's algorithm would delay a packet until the peer's delayed ACK, 40 ms.
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)


@dataclass(frozen=True)
class Login:
    """User name and password for CONNECT. cafile: speak TLS, and trust the CAs in this file."""

    user: str | None = None
    password: str | None = field(default=None, repr=False)
    cafile: str | None = None


class _Paho(paho.Client):
    """Tells of a packet that is none, instead of ending its thread with a traceback."""

    def loop_forever(self, *words: Any, **named: Any) -> Any:
        try:
            return super().loop_forever(*words, **named)
        except Exception as error:
            self.user_data_get().put(("broken", error))
            return MQTTErrorCode.MQTT_ERR_PROTOCOL


class Client:
    """A connected client of paho whose events are put into a queue."""

    def __init__(self, address: tuple[str, int], login: Login) -> None:
        """Connect. Unreachable, Refused or SafeMode: it did not succeed."""
        self.address = address
        self.events: Queue[tuple[str, Any]] = Queue()
        self._why = "no answer"  # if it cannot be reached
        self._is_plain = login.cafile is None
        self._client = client = _Paho(CallbackAPIVersion.VERSION2, userdata=self.events)
        client.on_socket_open = lambda _c, _u, sock: _send_at_once(sock)
        if login.cafile is not None:
            _use_tls(client, login.cafile)
        if login.user is not None:
            client.username_pw_set(login.user, login.password)
        client.on_connect = lambda _c, _u, _f, reason, _p: self.events.put(("connect", reason))
        client.on_subscribe = lambda _c, _u, _m, reasons, _p: self.events.put(
            ("subscribe", reasons[0])
        )
        client.on_publish = lambda *_: self.events.put(("published", None))
        client.on_disconnect = lambda *_: self.events.put(("disconnect", None))
        client.on_message = lambda _c, _u, message: self.received(message)
        try:
            client.connect(*address, keepalive=60)
        except ssl.SSLCertVerificationError as error:
            raise Unreachable(
                f"{address[0]}:{address[1]}: its certificate is not trusted:"
                f" {error.verify_message} (--cafile: {login.cafile})"
            ) from None
        except ssl.SSLError as error:
            raise Unreachable(f"no TLS at {address[0]}:{address[1]} ({error.reason})") from None
        except ConnectionResetError as error:  # it may be a broker without TLS, on a board
            if self._is_plain:
                raise Unreachable(self._unreachable(str(error))) from None
            raise Unreachable(f"no TLS at {address[0]}:{address[1]} ({error})") from None
        except OSError as error:
            raise Unreachable(self._unreachable(str(error))) from None
        client.loop_start()
        try:
            reason = self.wait("connect")
        except ToolError:
            self.close()
            raise
        self._why = "no answer"
        if reason != 0:
            self.close()
            why = _FULL if str(reason) == "Server unavailable" else ""
            raise Refused(f"{address[0]}:{address[1]}: {reason}{why}")

    def close(self) -> None:
        self._client.disconnect()
        self._client.loop_stop()

    def received(self, message: Any) -> None:
        """A message has come: into the queue, if it fits there. In paho's thread."""
        message.topic.encode()  # as text; an error is one of the broker
        message.payload = message.payload[:_LONGEST]
        if self.events.qsize() < _QUEUED:
            self.events.put(("message", message))

    def wait(self, kind: str, seconds: float = _TIMEOUT_S) -> Any:
        """The value of the next event of this kind; other events are dropped.

        Unreachable: none came in so many seconds. Closed, SafeMode: it disconnected."""
        deadline = time.monotonic() + seconds
        while True:
            got, what = self.next(deadline - time.monotonic())
            if got == kind:
                return what
            if got == "disconnect":
                if kind != "connect":  # paho tries CONNECT again
                    raise Closed("the broker closed the connection")
                _check_safe_mode(self.address, deadline)
                if self._is_plain:
                    self._why = "it closes each connection, as over TLS without --cafile"

    def next(self, seconds: float) -> tuple[str, Any]:
        """Kind and value of the next event. Unreachable: none came in so many seconds, or what is
        no MQTT."""
        try:
            found = self.events.get(timeout=max(0.001, seconds))
        except Empty:
            raise Unreachable(self._unreachable(self._why)) from None
        if found[0] == "broken":
            raise Unreachable(self._unreachable("its answer is none of MQTT 3.1.1"))
        return found

    def subscribe(self, topic: str, qos: int = 0) -> int:
        """Subscribe; -> the granted QoS. Refused: the broker answered with a failure."""
        self._client.subscribe(topic, qos)
        granted = self.wait("subscribe")
        if granted.is_failure:
            raise Refused(
                f"this client may not subscribe to {topic}: the acl_file or a hook"
                " (`may_subscribe`) forbids it"
            )
        return int(granted.value)

    def publish(self, topic: str, payload: bytes, qos: int) -> None:
        self._client.publish(topic, payload, qos)

    def _unreachable(self, why: str) -> str:
        host, port = self.address
        return (
            f"no MQTT at {host}:{port} ({why}): is this computer on the board's network, and does"
            " a firewall block the port?"
        )


def _use_tls(client: paho.Client, cafile: str) -> None:
    try:
        context = ssl.create_default_context(cafile=cafile)
    except OSError as error:
        raise ToolError(f"{cafile}: expected certificates of CAs in PEM ({error})") from None
    context.sslsocket_class = _Handshaking
    client.tls_set_context(context)


class _Handshaking(ssl.SSLSocket):
    """Closed if its handshake fails, which paho leaves to the collector."""

    def do_handshake(self, block: bool = False) -> None:
        try:
            super().do_handshake(block)
        except OSError:
            self.close()
            raise


class Unreachable(ToolError):
    """No broker answered at the address."""


class Refused(ToolError):
    """The broker answered and refused this client."""


class Closed(ToolError):
    """The broker closed the connection."""


class SafeMode(ToolError):
    """The board answered; it is in safe mode and runs no broker."""


def _check_safe_mode(address: tuple[str, int], deadline: float) -> None:
    answer = b""
    with suppress(OSError), socket.create_connection(address, _until(deadline)) as sock:
        sock.sendall(b"GET / HTTP/1.0\r\n\r\n")
        while len(answer) < _ANSWER_MAX and (piece := sock.recv(_ANSWER_MAX)):
            answer += piece
            sock.settimeout(_until(deadline))
    if found := _SAFE_MODE.search(answer):
        why = found[1].decode(errors="replace").strip()
        raise SafeMode(f"{address[0]}:{address[1]}: the board is in safe mode: {why}")


def _until(deadline: float) -> float:
    return max(0.001, deadline - time.monotonic())


def try_out(address: tuple[str, int], login: Login) -> str:
    """Connect, publish a message and receive it; -> the result as a text.

    A broker that asks for a login, or forbids the topic, is a result. ToolError: anything else
    that fails."""
    try:
        client = Client(address, login)
    except Refused as error:
        if any(text in str(error) for text in _NOT_AUTHORIZED) and login.user is None:
            why = str(error).partition(": ")[2]
            return f"it answers, and requires a login, as configured ({why})"
        raise
    try:
        return _round_trip(client)
    except Refused as error:
        return f"it answers; no message was sent: {error}"
    finally:
        client.close()


def _round_trip(client: Client) -> str:
    qos = client.subscribe(_TOPIC, 1)
    began = time.monotonic()
    client.publish(_TOPIC, _PAYLOAD, qos)
    sent = False  # and acknowledged, with QoS 1
    while True:
        try:
            kind, what = client.next(_AFTER_ACK_S if sent else _TIMEOUT_S)
        except Unreachable:
            if sent:
                return f"it answers, but does not deliver messages to {_TOPIC}: {_FORBIDDEN}"
            raise
        sent = sent or kind == "published"
        if kind == "disconnect":
            raise ToolError(
                f"the broker disconnects a client that publishes to {_TOPIC}: {_FORBIDDEN}"
            )
        if kind == "message":
            break
    if what.payload != _PAYLOAD:
        raise ToolError(f"the broker answered {what.payload[:_SHOWN]!r}")
    return f"a message came back in {(time.monotonic() - began) * 1000:.0f} ms"


def system_topics(address: tuple[str, int], login: Login, seconds: float = 2) -> dict[str, str]:
    """The payloads of $SYS by topic, received until no new topic comes for so many seconds.

    ToolError: none came, or the client could not connect."""
    client = Client(address, login)
    found: dict[str, str] = {}
    try:
        client.subscribe("$SYS/#")
        deadline = time.monotonic() + seconds
        end = time.monotonic() + _SYS_MAX_S
        while len(found) < _SYS_MAX and (left := min(deadline, end) - time.monotonic()) > 0:
            message = client.wait("message", left)
            if message.topic not in found:  # all topics come again, every sys_interval
                deadline = time.monotonic() + seconds
            found[message.topic] = message.payload.decode(errors="replace")
    except Unreachable:
        pass  # nothing more comes
    finally:
        client.close()
    if not found:
        raise ToolError(_NO_SYS)
    return found


def with_limits(found: dict[str, str]) -> dict[str, str]:
    """`found` with each limit as part of its figure (`3 of 16`), not as a topic of its own."""
    root = "$SYS/broker/"
    limit_of = {root + name: root + limit for name, limit in _LIMITS.items()}
    limit_of |= {
        topic: topic.removesuffix("high") + "limit" for topic in found if topic.endswith("/high")
    }
    limits = set(limit_of.values())
    return {
        topic: _with_limit(value, found.get(limit_of.get(topic, "")))
        for topic, value in found.items()
        if topic not in limits
    }


def _with_limit(value: str, limit: str | None) -> str:
    return f"{value} of {limit}" if limit else value
