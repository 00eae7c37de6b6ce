"""Mqtt: a broker for a test, with a view of what passes, and faults.

    with Mqtt() as mqtt:
        program.connect(mqtt.host, mqtt.port)
        mqtt.wait_for("room/1/temperature", payload="21.5")

In unittest: `self.mqtt = Mqtt(); self.addCleanup(self.mqtt.close)`. In asyncio there is `async
with`: nothing here blocks for longer than a turn, but what waits, hence wait_for_async().
"""

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NoReturn, Self

from slotmq.constants import EXTRA, LOST, NONE

from . import network, texts
from .options import Options
from .server import Server
from .texts import Message, NotRunning, Payload

__all__ = ("Client", "Message", "Mqtt", "NotRunning")

Subscription = tuple[str, str, int]  # client id, filter, QoS
__tracebackhide__ = texts.is_told
_REPORTED = 40  # packets, and lines of the log, in a report
_CONNECT_S = 0.5
_UNITS = {"ms": 0.001, "s": 1.0, "min": 60.0}


@dataclass(frozen=True)
class Client:
    """A client that the broker knows; `is_connected` False: only its session is there."""

    id: str
    is_connected: bool
    address: tuple[str, int] | None
    version: str | None
    queued: int
    subscriptions: dict[str, int]


class Mqtt:
    """A broker. Arguments: conf, users, tls, limits, board, version, runtime; see Options."""

    host = network.HOST

    def __init__(self, **options: Any) -> None:
        self.options = Options.of(**options)
        self._server: Any = _server(self.options)
        self.port: int = self._server.network.port

    @property
    def url(self) -> str:
        return f"mqtt{'s' if self.options.tls else ''}://{self.host}:{self.port}"

    @property
    def cafile(self) -> str | None:
        """With tls=True: the file of the CA that clients must trust."""
        if not self.options.tls:
            return None
        from .tls import authority

        return str(authority() / "ca.crt")

    @property
    def broker(self) -> Any:
        """The slotmq.Broker, for hooks and callbacks; None after a power cut."""
        return self._faults("broker").broker

    def close(self) -> None:
        """Stop the broker in order. A second call does nothing."""
        self._server.check_thread()
        server, self._server = self._server, _Closed(self._server)
        server.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        self.close()

    # Look inside

    def messages(self, topic_filter: str = "#", payload: Payload = None) -> list[Message]:
        """The messages published so far, wills included, in their order; not those of $SYS."""
        texts.checked_filter(topic_filter)
        texts.check_payload(payload)
        return [
            one
            for one in list(self._server.spy.messages)
            if texts.matches(topic_filter, one.topic) and texts.fits(payload, one.payload)
        ]

    def wait_for(
        self, topic_filter: str, payload: Payload = None, *, timeout: float = 2, count: int = 1
    ) -> Message:
        """Wait for the count-th such message since the start or clear(); -> it.

        payload: str, bytes, a number, or a function. AssertionError: what was there instead."""
        self._check_wait(topic_filter, timeout, count, payload)
        server = self._server
        found: Message | None = server.spy.wait(
            lambda: self._nth(topic_filter, payload, count), server.check_failure, timeout
        )
        return found or self._missing(topic_filter, payload, timeout, count, texts.hint())

    async def wait_for_async(
        self, topic_filter: str, payload: Payload = None, *, timeout: float = 2, count: int = 1
    ) -> Message:
        """wait_for() for asyncio."""
        self._check_wait(topic_filter, timeout, count, payload)
        server = self._server
        found: Message | None = await server.spy.wait_async(
            lambda: self._nth(topic_filter, payload, count), server.check_failure, timeout
        )
        return found or self._missing(topic_filter, payload, timeout, count)

    def wait_for_subscription(
        self, topic_filter: str, client: str | None = None, *, timeout: float = 2
    ) -> Subscription:
        """Wait until this client, or any, has subscribed to just this filter.

        -> client id, filter, QoS. AssertionError: the subscriptions that were there instead."""
        self._check_wait(topic_filter, timeout)
        server = self._faults("wait_for_subscription()")
        found: Subscription | None = server.spy.wait(
            self._subscribed(topic_filter, client), server.check, timeout
        )
        return found or self._not_subscribed(topic_filter, client, timeout, texts.hint())

    async def wait_for_subscription_async(
        self, topic_filter: str, client: str | None = None, *, timeout: float = 2
    ) -> Subscription:
        """wait_for_subscription() for asyncio."""
        self._check_wait(topic_filter, timeout)
        server = self._faults("wait_for_subscription_async()")
        look = self._subscribed(topic_filter, client)
        found: Subscription | None = await server.spy.wait_async(look, server.check, timeout)
        return found or self._not_subscribed(topic_filter, client, timeout)

    @property
    def packets(self) -> list[str]:
        """A line for each of the last packets: the client, -> or <-, what it is."""
        self._server.catch_up()
        return list(self._server.spy.packets)

    @property
    def log(self) -> list[str]:
        """The lines of the broker's log."""
        self._server.catch_up()
        return list(self._server.log)

    @property
    def retained(self) -> dict[str, bytes]:
        """Topic and payload of each retained message."""
        found: dict[str, bytes] = self._do(lambda broker: dict(_retained(broker)))
        return found

    @property
    def clients(self) -> list[Client]:
        """The clients that are connected or have a session."""
        found: list[Client] = self._do(lambda broker: list(_clients(broker)))
        return found

    @property
    def subscriptions(self) -> list[Subscription]:
        """(client id, filter, QoS) of each subscription."""
        return [
            (one.id, name, qos) for one in self.clients for name, qos in one.subscriptions.items()
        ]

    def publish(
        self,
        topic: str,
        payload: str | bytes | int | float = b"",
        qos: int = 0,
        retain: bool = False,
    ) -> None:
        """Publish as the broker's own program, a number as its text. AssertionError: a table is
        full."""
        data = str(payload) if isinstance(payload, int | float) else payload
        if not self._server.publish(topic, data, qos, retain):
            raise AssertionError(f"{topic} was not published: a table is full\n{self.report()}")

    def clear(self) -> None:
        """Forget the messages and packets so far."""
        self._server.spy.messages.clear()
        self._server.spy.packets.clear()

    def report(self, beside: str = "") -> str:
        """The last packets and lines of the log, as on a failed test. beside: a text that has
        the very last packets already."""
        packets, head = self.packets[-_REPORTED:], texts.LAST
        if texts.LAST in beside:
            packets, head = packets[: -texts.SHOWN], "packets before these:"
        lines = [head, *texts.last(packets, _REPORTED)] if packets or not beside else []
        return "\n".join([*lines, "log:", *texts.last(self.log, _REPORTED)])

    # Make things go wrong

    def disconnect(self, client: str) -> None:
        """The client's connection is lost: it sees a reset, its will is published."""
        self._end([self._line(client)])

    def refuse(self, client: str, code: int = 3, times: int = 1) -> None:
        """Refuse the next CONNECTs of this client id. code: 1 to 5 of MQTT 3.1.1."""
        if not isinstance(client, str):
            raise TypeError(f"client: expected a str, not {client!r}")
        if texts.checked_number("code", code, 1, int) > 5:
            raise ValueError("code: expected 1 to 5, as in CONNACK of MQTT 3.1.1")
        texts.checked_number("times", times, 1, int)
        self._do(lambda _: self._server.spy.refuse(client, code, times))

    def drop(self, topic_filter: str, *, next: int = 1) -> None:  # noqa: A002
        """Lose the next messages on these topics that clients send, as a bad network would."""
        texts.checked_filter(topic_filter)
        texts.checked_number("next", next, 1, int)
        self._do(lambda _: self._server.spy.drops.append([topic_filter, next]))

    def delay(self, time_each_way: str | float) -> None:
        """Let what the broker sends arrive later: "200ms", "2s", or seconds; 0: no more."""
        seconds = _seconds(time_each_way)
        self._do(lambda _: setattr(self._server.network, "delay_s", seconds))

    @contextmanager
    def cut(self) -> Iterator[None]:
        """No network: connections are lost, and new ones reset until the end of the block."""
        server = self._faults("cut()")
        server.check()
        net = server.network
        net.is_cut = True
        try:
            self._end(list(net.lines))
            yield
        finally:
            net.is_cut = False

    def half_open(self, client: str) -> None:
        """What this client and the broker send each other is lost from now on. Neither knows."""
        line = self._line(client)
        self._do(lambda _: setattr(line, "silent", True))

    def stop_reading(self, client: str) -> None:
        """The client takes no more of what the broker sends: a slow reader."""
        self._stall(client, True)

    def read_again(self, client: str) -> None:
        """It takes all again."""
        self._stall(client, False)

    def power_cut(self) -> None:
        """The power fails: only the journal survives, with conf="persistence true"."""
        self._faults("power_cut()").check()
        self._server.power_cut()

    def restart(self) -> None:
        """Start again on the same port: after power_cut(), or else after an orderly stop."""
        server = self._faults("restart()")
        if server.broker:
            server.stop()
        server.start()

    def advance(
        self, *, days: float = 0, hours: float = 0, minutes: float = 0, seconds: float = 0
    ) -> None:
        """Let this time pass for the broker: expiry, keep-alive, delays of wills."""
        for name, value in (("days", days), ("hours", hours), ("minutes", minutes)):
            texts.checked_number(name, value, 0)
        texts.checked_number("seconds", seconds, 0)
        total = ((days * 24 + hours) * 60 + minutes) * 60 + seconds
        self._faults("advance()").advance(round(total * 10))

    # Of this class

    def _check_wait(
        self, topic_filter: str, timeout: float, count: int = 1, payload: Payload = None
    ) -> None:
        texts.checked_filter(topic_filter)
        texts.check_payload(payload)
        texts.checked_number("timeout", timeout, 0)
        texts.checked_number("count", count, 1, int)

    def _nth(self, topic_filter: str, payload: Payload, count: int) -> Message | None:
        found = self.messages(topic_filter, payload)
        return found[count - 1] if len(found) >= count else None

    def _missing(
        self, topic_filter: str, payload: Payload, timeout: float, count: int, hint: str = ""
    ) -> NoReturn:
        server = self._server
        server.check()
        seen = list(server.spy.messages), self.packets
        raise AssertionError(texts.missing(topic_filter, payload, timeout, count, *seen) + hint)

    def _subscribed(
        self, topic_filter: str, client: str | None
    ) -> Callable[[], Subscription | None]:
        def look() -> Subscription | None:
            for one in self.subscriptions:
                if one[1] == topic_filter and client in (None, one[0]):
                    return one
            return None

        return look

    def _not_subscribed(
        self, topic_filter: str, client: str | None, timeout: float, hint: str = ""
    ) -> NoReturn:
        there = self.subscriptions, self.packets
        raise AssertionError(texts.not_subscribed(topic_filter, client, timeout, *there) + hint)

    def _faults(self, what: str) -> Any:
        if self.options.runtime == "micropython":
            raise texts.NotOnMicroPython(f'{what}: not with runtime="micropython"')
        return self._server

    def _do(self, function: Any) -> Any:
        server = self._faults("the view into the broker and faults")
        return server.do(lambda: function(server.broker))

    def _line(self, client: str) -> Any:
        # Waits for a CONNECT that is on its way. Looks between two turns: within the turn of a
        # takeover there are two lines of the client
        server = self._faults("the view into the broker and faults")

        def lines() -> dict[str, Any]:
            return {one.client.decode(): one for one in list(server.network.lines) if one.client}

        found = server.spy.wait(lambda: server.do(lines).get(client), server.check, _CONNECT_S)
        if found is None:
            there = ", ".join(sorted(lines())) or "none"
            raise AssertionError(f"no client {client!r} is connected, only: {there}")
        return found

    def _end(self, lines: list[Any]) -> None:
        def end(broker: Any) -> None:
            for line in lines:
                conn = broker.loop.of_stream.get(line)
                if conn is not None:
                    line.late.clear()
                    line.silent = True  # so that its end is a reset
                    broker.end(conn, LOST)
            broker.loop.finish_turn()

        self._do(end)

    def _stall(self, client: str, stalled: bool) -> None:
        line = self._line(client)

        def stall(broker: Any) -> None:
            line.stalled = stalled
            conn = broker.loop.of_stream.get(line)
            if conn is not None:
                broker.loop.poll_for(conn)

        self._do(stall)


def _server(options: Options) -> Any:
    if options.runtime == "micropython":
        from .process import Process

        return Process(options)
    return Server(options)


class _Closed:
    """Stands for the server of an Mqtt that is closed: what was seen is there still."""

    def __init__(self, server: Any) -> None:
        self.spy, self.log, self.network = server.spy, server.log, server.network
        self.broker = None

    def close(self) -> None:
        pass

    catch_up = check_thread = close

    def __getattr__(self, name: str) -> Any:
        raise NotRunning("this Mqtt is closed")


def _seconds(value: str | float) -> float:
    found = re.fullmatch(r"(\d+\.?\d*) ?(ms|s|min)?", str(value))
    if not found:
        raise ValueError(f'delay(): expected "200ms", "2s" or seconds, not {value!r}')
    return float(found[1]) * _UNITS[found[2] or "s"]


def _clients(broker: Any) -> Iterator[Client]:
    sessions, conns = broker.sessions, broker.conns
    for session in range(sessions.slots):
        if not sessions.used(session):
            continue
        conn = sessions.conn[session]
        here = conn != NONE
        source = conns.source[conn] if here else None
        if isinstance(source, list):  # with the user's name
            source = source[0]
        level = {3: "3.1", 4: "3.1.1", 5: "5.0"}[conns.level[conn]] if here else None
        yield Client(
            sessions.client_id(session).decode(),
            here,
            source if isinstance(source, tuple) else None,
            level,
            sessions.queued[session],
            dict(_subscriptions(broker, session)),
        )


def _subscriptions(broker: Any, session: int) -> Iterator[tuple[str, int]]:
    subs = broker.subscriptions
    sub = broker.sessions.first_sub[session]
    text = bytearray(2 * broker.limits.topic_bytes + 64)
    while sub != NONE:
        at = subs.filter_text(subs.node[sub], text, len(text))
        yield _share(broker, sub) + bytes(text[at:]).decode(), subs.qos[sub] & 3
        sub = subs.next_in_session[sub]


def _share(broker: Any, sub: int) -> str:
    # What stands before the filter of a shared subscription
    five = broker.five
    share = five.share[sub] if five else NONE
    if share == NONE:
        return ""
    name = bytearray(five.shares.names.length[share])
    five.shares.names.read(share, name, 0)
    return f"$share/{name.decode()}/"


def _retained(broker: Any) -> Iterator[tuple[str, bytes]]:
    table, messages = broker.retained, broker.messages
    for slot in range(table.top):
        msg = table.msg[slot]
        if msg == NONE:
            continue
        has_more = messages.flags[msg] & EXTRA
        if has_more and not broker.five.remaining(broker, msg):
            continue  # it has expired, and is removed when somebody asks for it
        data = bytes(messages.arena.text(messages.first[msg]))
        at = 2 + messages.topic_len[msg]
        yield data[2:at].decode(), data[at + (broker.five.props[msg] if has_more else 0) :]
