"""The moves and messages that a scenario of MQTT 5.0 consists of, and how a step is played."""

import contextlib
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any


class Cannot(Exception):
    """The client has no way to do this."""


@dataclass(frozen=True)
class Message:
    """A message with all that a subscriber gets; None is a property that was not sent."""

    topic: str
    payload: str = "hi"
    qos: int = 1
    retain: bool = False
    format: int | None = None
    content_type: str | None = None
    response_topic: str | None = None
    correlation: str | None = None
    expiry: int | None = None
    user: tuple[tuple[str, str], ...] = ()
    identifiers: tuple[int, ...] = ()  # of the subscriptions it came for
    aliased: bool = False  # it came with an alias for its topic

    def under(self, base: str) -> "Message":
        return replace(self, topic=f"{base}/{self.topic}")

    def given(self, names: dict[str, str]) -> dict[str, Any]:
        """The properties that it has, by the names of a client."""
        values: dict[str, Any] = {name: getattr(self, name) for name in names}
        if self.correlation is not None:
            values["correlation"] = self.correlation.encode()
        values["user"] = list(self.user) or None
        return {names[name]: value for name, value in values.items() if value is not None}

    @staticmethod
    def came(told: dict[str, Any], identifiers: Any, **fields: Any) -> "Message":
        """One with these properties, by our names."""
        if "correlation" in told:
            told["correlation"] = told["correlation"].decode()
        told["user"] = tuple(told.get("user", ()))
        return Message(**fields, **told, identifiers=tuple(identifiers))


@dataclass(frozen=True)
class Connect:
    """`name` is the client id if it is not `who`; `aliases` the Topic Alias Maximum."""

    who: str
    name: str = ""
    clean: bool = True
    expiry: int = 0
    aliases: int = 0
    will: Message | None = None  # with delay 0
    present: bool | None = None  # what Session Present in the CONNACK must be

    def under(self, base: str) -> "Connect":
        will = self.will and self.will.under(base)
        return replace(self, name=base + (self.name or self.who), will=will)


@dataclass(frozen=True)
class Subscribe:
    """All filters with the same options, in one SUBSCRIBE."""

    who: str
    filters: tuple[str, ...]
    qos: int = 1
    no_local: bool = False
    as_published: bool = False
    handling: int = 0
    identifier: int | None = None

    def under(self, base: str) -> "Subscribe":
        return replace(self, filters=tuple(_filter_under(base, name) for name in self.filters))


def _filter_under(base: str, name: str) -> str:
    if not name.startswith("$share/"):
        return f"{base}/{name}"
    _, group, rest = name.split("/", 2)
    return f"$share/{base}{group}/{base}/{rest}"


@dataclass(frozen=True)
class Publish:
    """`times` in a row; with `alias` all except the first have an alias and no topic."""

    who: str
    message: Message
    alias: int | None = None
    times: int = 1
    reason: int | None = None  # what the last PUBACK must have

    def under(self, base: str) -> "Publish":
        return replace(self, message=self.message.under(base))


@dataclass(frozen=True)
class Receive:
    """The next message of this client is that one."""

    who: str
    message: Message


@dataclass(frozen=True)
class Share:
    """Each message comes to one of these clients; `end` comes to all of them last."""

    members: tuple[str, ...]
    messages: tuple[Message, ...]
    end: Message


@dataclass(frozen=True)
class Leave:
    who: str


@dataclass(frozen=True)
class Die:
    """The connection ends so that the broker publishes the will."""

    who: str


@dataclass(frozen=True)
class Ended:
    """The broker ended the connection with this reason code."""

    who: str
    reason: int


Move = Connect | Subscribe | Publish | Receive | Share | Leave | Die | Ended
Step = tuple[Move, ...]


class Adapter(ABC):
    """One client. Each method waits for the broker, or raises Cannot if the client has no way."""

    def __init__(self, address: tuple[str, int]) -> None:
        self.address = address

    @abstractmethod
    def connect(self, how: Connect) -> bool:
        """-> "session present"."""

    @abstractmethod
    def subscribe(self, how: Subscribe) -> list[int]:
        """-> the codes of the SUBACK."""

    @abstractmethod
    def publish(self, how: Publish) -> int | None:
        """-> the code of the last PUBACK if `how` asks for it."""

    @abstractmethod
    def receive(self) -> Message: ...

    @abstractmethod
    def ended(self) -> int:
        """-> the reason code with which the broker ended the connection."""

    @abstractmethod
    def leave(self) -> None: ...

    @abstractmethod
    def die(self) -> None: ...

    @abstractmethod
    def close(self) -> None:
        """End it in any state."""


SLOW_S = 10  # seconds that may pass between publishing and receiving


def play(step: Step, base: str, new: Callable[[], Adapter]) -> None:
    """Go through the moves, with `base` before all topics and client ids."""
    players: dict[str, Adapter] = {}
    with contextlib.ExitStack() as last:
        for move in step:
            if isinstance(move, Connect) and move.who not in players:
                players[move.who] = new()
                last.callback(players[move.who].close)
            _do(move, base, players)


def _do(move: Move, base: str, players: dict[str, Adapter]) -> None:
    match move:
        case Share():
            _share(move, base, players)
        case Connect():
            present = players[move.who].connect(move.under(base))
            assert move.present in (None, present)
        case Subscribe():
            codes = players[move.who].subscribe(move.under(base))
            assert codes == [move.qos] * len(move.filters)
        case Publish():
            reason = players[move.who].publish(move.under(base))
            assert move.reason in (None, reason)
        case Receive():
            same(players[move.who].receive(), move.message.under(base))
        case Ended():
            assert players[move.who].ended() == move.reason
        case Leave():
            players[move.who].leave()
        case Die():
            players[move.who].die()


def same(got: Message, sent: Message) -> None:
    """The message is as it was sent, except for the seconds of its expiry that have passed."""
    if got.expiry is not None and sent.expiry is not None:
        assert sent.expiry - SLOW_S <= got.expiry <= sent.expiry
        got = replace(got, expiry=sent.expiry)
    assert got == sent


def _share(move: Share, base: str, players: dict[str, Adapter]) -> None:
    """Each message has come to one of the members, the last one to all."""
    end, found = move.end.under(base), []
    for who in move.members:
        while (message := players[who].receive()) != end:
            found.append(message)
    found.sort(key=lambda message: message.payload)
    assert found == [message.under(base) for message in move.messages]
