"""A real MQTT client, that tries a broker as its users will, and reads $SYS."""

import time
from dataclasses import dataclass
from queue import Empty, Queue
from typing import Any

import paho.mqtt.client as paho
from paho.mqtt.enums import CallbackAPIVersion

from ..errors import ToolError

_PATIENCE_S = 15
_NOT_AUTHORIZED = ("Not authorized", "Bad user name or password")


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
        if login.user is not None:
            client.username_pw_set(login.user, login.password)
        client.on_connect = lambda _c, _u, _f, reason, _p: self.events.put(("connect", reason))
        client.on_subscribe = lambda *_: self.events.put(("subscribe", None))
        client.on_message = lambda _c, _u, message: self.events.put(("message", message))
        try:
            client.connect(*address, keepalive=60)
        except OSError as error:
            raise Unreachable(self._unreachable(str(error))) from None
        client.loop_start()
        reason = self.wait("connect")
        if reason != 0:
            self.close()
            raise Refused(f"{address[0]}:{address[1]}: {reason}")

    def close(self) -> None:
        self._client.disconnect()
        self._client.loop_stop()

    def wait(self, kind: str, seconds: float = _PATIENCE_S) -> Any:
        """The next event of that kind."""
        deadline = time.monotonic() + seconds
        while True:
            try:
                got, what = self.events.get(timeout=max(0.001, deadline - time.monotonic()))
            except Empty:
                raise Unreachable(self._unreachable("no answer")) from None
            if got == kind:
                return what

    def subscribe(self, topic: str, qos: int = 0) -> None:
        self._client.subscribe(topic, qos)
        self.wait("subscribe")

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
    """The broker answered, and let nobody in."""


def try_out(address: tuple[str, int], login: Login) -> str:
    """Publish a message and get it back; -> what came of it."""
    try:
        client = Client(address, login)
    except Refused as error:
        if any(text in str(error) for text in _NOT_AUTHORIZED) and login.user is None:
            return f"{error}: it answers and asks for a login, as configured"
        raise
    try:
        client.subscribe("slotmq/deploy", 1)
        began = time.monotonic()
        client.publish("slotmq/deploy", b"is it there?", 1)
        message = client.wait("message")
        took = (time.monotonic() - began) * 1000
        if message.payload != b"is it there?":
            raise ToolError(f"the broker answered {message.payload!r}")
    finally:
        client.close()
    return f"a message came back in {took:.0f} ms"


def system_topics(address: tuple[str, int], login: Login, seconds: float = 2) -> dict[str, str]:
    """What $SYS says, by topic."""
    client = Client(address, login)
    found: dict[str, str] = {}
    try:
        client.subscribe("$SYS/#")
        while True:
            message = client.wait("message", seconds)
            found[message.topic] = message.payload.decode(errors="replace")
    except ToolError:
        if not found:
            raise ToolError("the broker publishes no $SYS: `sys_interval` is 0") from None
        return found
    finally:
        client.close()
