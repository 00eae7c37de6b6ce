"""A real MQTT client, that tries a broker as its users will, and reads $SYS."""

import re
import socket
import time
from contextlib import suppress
from dataclasses import dataclass
from queue import Empty, Queue
from typing import Any

import paho.mqtt.client as paho
from paho.mqtt.enums import CallbackAPIVersion

from ..errors import ToolError

_TIMEOUT_S = 15
_LONGEST_S = 30  # that $SYS is listened to
_LONGEST_ANSWER = 2048
_BEHIND_S = 5  # a message may come so much later than its acknowledgement
_TOPIC = "slotmq/deploy"
_PAYLOAD = b"is it there?"
_WHO_FORBIDS = "a hook (`may_publish`) or a limit on what may be published forbids it"
# Where the limit of a figure stands, both behind $SYS/broker/; slots/<table>/high beside these
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
    "the broker publishes no $SYS (`sys_interval` is 0), or lets this client have none"
    " (the hook `may_subscribe`)"
)
_FULL = " (all its connections are taken; try again when a client has gone)"
# What firmware/slotmq_run/safe.py answers whoever comes
_SAFE_MODE = re.compile(rb"slotmq: safe mode: (.*)")
_NOT_AUTHORIZED = ("Not authorized", "Bad user name or password")
_NO_SCRAM = (
    " (the users of a `scram_file` come in by SCRAM of MQTT 5.0 only, and this command does not"
    " speak it)"
)


def _send_at_once(sock: Any) -> None:
    # else a packet behind one that has no answer waits for the other side's delayed ACK, 40 ms
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)


@dataclass(frozen=True)
class Login:
    """Who comes in, if the broker asks."""

    user: str | None = None
    password: str | None = None


class Client:
    """paho's client, with what has come in a queue."""

    def __init__(self, address: tuple[str, int], login: Login) -> None:
        self.address = address
        self.events: Queue[tuple[str, Any]] = Queue()
        self._client = client = paho.Client(CallbackAPIVersion.VERSION2)
        client.on_socket_open = lambda _c, _u, sock: _send_at_once(sock)
        if login.user is not None:
            client.username_pw_set(login.user, login.password)
        client.on_connect = lambda _c, _u, _f, reason, _p: self.events.put(("connect", reason))
        client.on_subscribe = lambda _c, _u, _m, reasons, _p: self.events.put(
            ("subscribe", reasons[0])
        )
        client.on_publish = lambda *_: self.events.put(("published", None))
        client.on_disconnect = lambda *_: self.events.put(("disconnect", None))
        client.on_message = lambda _c, _u, message: self.events.put(("message", message))
        try:
            client.connect(*address, keepalive=60)
        except OSError as error:
            raise Unreachable(self._unreachable(str(error))) from None
        client.loop_start()
        try:
            reason = self.wait("connect")
        except ToolError:
            self.close()
            raise
        if reason != 0:
            self.close()
            why = _FULL if str(reason) == "Server unavailable" else ""
            if login.user is not None and str(reason) in _NOT_AUTHORIZED:
                why = _NO_SCRAM
            raise Refused(f"{address[0]}:{address[1]}: {reason}{why}")

    def close(self) -> None:
        self._client.disconnect()
        self._client.loop_stop()

    def wait(self, kind: str, seconds: float = _TIMEOUT_S) -> Any:
        """The next event of that kind."""
        deadline = time.monotonic() + seconds
        while True:
            got, what = self.next(deadline - time.monotonic())
            if got == kind:
                return what
            if got == "disconnect":
                if kind != "connect":  # which is tried again
                    raise Closed("the broker closed the connection")
                _check_safe_mode(self.address)

    def next(self, seconds: float) -> tuple[str, Any]:
        """The next event, and what about it."""
        try:
            return self.events.get(timeout=max(0.001, seconds))
        except Empty:
            raise Unreachable(self._unreachable("no answer")) from None

    def subscribe(self, topic: str, qos: int = 0) -> int:
        """-> the QoS that is granted; Refused: none is."""
        self._client.subscribe(topic, qos)
        granted = self.wait("subscribe")
        if granted.is_failure:
            raise Refused(
                f"the broker lets this client not subscribe to {topic}: a hook (`may_subscribe`)"
                " forbids it"
            )
        return int(granted.value)

    def publish(self, topic: str, payload: bytes, qos: int) -> None:
        self._client.publish(topic, payload, qos)

    def _unreachable(self, why: str) -> str:
        host, port = self.address
        return (
            f"no MQTT at {host}:{port} ({why}): is this computer on the board's network, and does"
            " no firewall stand between?"
        )


class Unreachable(ToolError):
    """Nobody answered there."""


class Refused(ToolError):
    """The broker answered, and did not let this client."""


class Closed(ToolError):
    """The broker was there, and has ended the connection."""


class SafeMode(ToolError):
    """The board is there, and runs no broker now."""


def _check_safe_mode(address: tuple[str, int]) -> None:
    heard = b""
    with suppress(OSError), socket.create_connection(address, _TIMEOUT_S) as sock:
        sock.sendall(b"GET / HTTP/1.0\r\n\r\n")
        while len(heard) < _LONGEST_ANSWER and (piece := sock.recv(_LONGEST_ANSWER)):
            heard += piece
    if found := _SAFE_MODE.search(heard):
        why = found[1].decode(errors="replace").strip()
        raise SafeMode(f"{address[0]}:{address[1]}: the board is in safe mode: {why}")


def try_out(address: tuple[str, int], login: Login) -> str:
    """Publish a message and get it back; -> what came of it."""
    try:
        client = Client(address, login)
    except Refused as error:
        if any(text in str(error) for text in _NOT_AUTHORIZED) and login.user is None:
            return f"{error}: it answers and asks for a login, as configured"
        raise
    try:
        return _there_and_back(client)
    except Refused as error:
        return f"it answers, and no message was tried: {error}"
    finally:
        client.close()


def _there_and_back(client: Client) -> str:
    qos = client.subscribe(_TOPIC, 1)
    began = time.monotonic()
    client.publish(_TOPIC, _PAYLOAD, qos)
    sent = False  # and acknowledged, if that is due
    while True:
        try:
            kind, what = client.next(_BEHIND_S if sent else _TIMEOUT_S)
        except Unreachable:
            if sent:
                return f"it answers, and passes no message to {_TOPIC} on: {_WHO_FORBIDS}"
            raise
        sent = sent or kind == "published"
        if kind == "disconnect":
            raise ToolError(
                f"the broker closes the connection of who publishes to {_TOPIC}: {_WHO_FORBIDS}"
            )
        if kind == "message":
            break
    if what.payload != _PAYLOAD:
        raise ToolError(f"the broker answered {what.payload!r}")
    return f"a message came back in {(time.monotonic() - began) * 1000:.0f} ms"


def system_topics(address: tuple[str, int], login: Login, seconds: float = 2) -> dict[str, str]:
    """What $SYS says, by topic: until nothing new has come for so long."""
    client = Client(address, login)
    found: dict[str, str] = {}
    try:
        client.subscribe("$SYS/#")
        deadline = time.monotonic() + seconds
        end = time.monotonic() + _LONGEST_S
        while (left := min(deadline, end) - time.monotonic()) > 0:
            message = client.wait("message", left)
            if message.topic not in found:  # others tell again, every sys_interval
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
    """Each figure with its limit behind it, where the broker tells one."""
    root = "$SYS/broker/"
    of = {root + name: root + limit for name, limit in _LIMITS.items()}
    of |= {
        topic: topic.removesuffix("high") + "limit" for topic in found if topic.endswith("/high")
    }
    told = {topic: value for topic, value in found.items() if topic not in of.values()}
    return {topic: _of(value, found.get(of.get(topic, ""))) for topic, value in told.items()}


def _of(value: str, limit: str | None) -> str:
    return f"{value} of {limit}" if limit else value
