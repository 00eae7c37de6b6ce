"""What a scenario says, as read from its file: each field has its kind and what it means.

The tables of the file are the classes, their keys the fields; `slotmq sim --keys` prints
them from here. Times are in milliseconds.
"""

from dataclasses import Field, dataclass, field, fields
from typing import Any

from .. import boards
from . import kinds

VERSIONS = {"3.1": 3, "3.1.1": 4, "5.0": 5}
NUMBER_BYTES = 4  # of a payload: which message it is
PAYLOAD_MAX = 1 << 20
PAGE = 256  # bytes of flash that are programmed at a time


def _key(kind: kinds.Kind, told: str, default: Any = ..., shown: str | None = None) -> Any:
    metadata = {"kind": kind, "help": told, "shown": shown}
    return (
        field(metadata=metadata) if default is ... else field(default=default, metadata=metadata)
    )


def _time(
    told: str, default: int, least: int = 0, most: str = "3650 d", shown: str | None = None
) -> Any:
    return _key(kinds.span(least, most), told, default, shown or kinds.shown(default))


def keys(cls: type) -> dict[str, Field[Any]]:
    """The keys of a table, by name."""
    return {each.name: each for each in fields(cls) if "kind" in each.metadata}


@dataclass(frozen=True)
class Link:
    """A way between clients and the broker, of each client its own."""

    latency: int = _time("one way", 5, most="60 s")
    jitter: int = _time("up to so much more, by chance", 0, most="60 s")
    bandwidth: int = _key(
        kinds.size(0, 1 << 30), "bytes a second in each direction; 0: no bound", 0
    )
    loss: float = _key(
        kinds.number(0, 50), "times in a hundred that a packet comes a retransmission late", 0.0
    )
    retransmission: int = _time("how late that is", 300, 1, "60 s")
    buffer: int = _key(
        kinds.size(512, 1 << 26), "bytes that the broker's socket takes ahead of the client", 5840
    )
    outage_for: int = _time("the network is away for so long", 0, shown="never")
    outage_every: int = _time(
        "from one outage to the next, half to one and a half times that", 0, 1, shown="never"
    )
    outage_first: int = _time("exactly then, and exactly every so often", -1, shown="by chance")


@dataclass(frozen=True)
class Publish:
    """Messages that each client of a group publishes."""

    topic: str = _key(kinds.topic, "{n} is the client's number")
    every: int = _time("from one message to the next; or give rate", 0, 1, shown="rate")
    rate: float = _key(
        kinds.number(0.00001, 1000), "messages a second of each client", 0.0, "every"
    )
    payload: int = _key(kinds.size(NUMBER_BYTES, PAYLOAD_MAX), "bytes", 20)
    qos: int = _key(kinds.whole(0, 2), "0, 1 or 2", 0)
    retain: bool = _key(kinds.flag, "the last one is kept for new subscribers", False)
    burst: int = _key(kinds.whole(1, 1000), "so many at once", 1)
    first: int = _time("when the first one is due", -1, shown="by chance")
    count: int = _key(kinds.whole(0, 10**9), "no more than so many; 0: no bound", 0)

    @property
    def period(self) -> float:
        """Milliseconds from one to the next."""
        return self.every or 1000 / self.rate


@dataclass(frozen=True)
class Will:
    """What the broker publishes for a client whose connection breaks."""

    topic: str = _key(kinds.topic, "{n} is the client's number")
    payload: int = _key(kinds.size(NUMBER_BYTES, 65535), "bytes", 20)
    qos: int = _key(kinds.whole(0, 2), "0, 1 or 2", 0)
    retain: bool = _key(kinds.flag, "kept for new subscribers", False)


@dataclass(frozen=True)
class Clients:
    """A group of clients that are alike."""

    name: str = _key(kinds.word, "client ids are name-1, name-2, ...")
    count: int = _key(kinds.whole(1, 5000), "how many", 1)
    version: str = _key(kinds.one_of(*VERSIONS), "of MQTT", "3.1.1")
    publish: tuple[Publish, ...] = _key(kinds.anything, "tables, see below", ())
    subscribe: tuple[str, ...] = _key(kinds.filters, "topic filters, with {n}", ())
    subscribe_qos: int = _key(kinds.whole(0, 2), "of these subscriptions", 0)
    clean: bool = _key(kinds.flag, "the session ends with its connection", True)
    expiry: int = _time("of a kept session, for 5.0", -1, shown="never")
    keep_alive: int = _time("0: none", 60_000, most="65535 s")
    will: Will | None = _key(kinds.anything, "a table, see below", None, "none")
    link: str = _key(kinds.word, "the name of a table in links", "lan")
    start: int = _time("when they come first", 0)
    sleeps: bool = _key(kinds.flag, "they come for each message, and leave then", False)
    online_for: int = _time("they leave after so long", 0, 1, shown="they stay")
    offline_for: int = _time("and come again after so long", 0, 1, shown="never")
    reconnect: int = _time("pause before they come again", 3000, 1)
    inflight: int = _key(kinds.whole(1, 65535), "QoS 1 and 2 sent and not acknowledged", 20)

    @property
    def level(self) -> int:
        """The protocol level that a CONNECT says."""
        return VERSIONS[self.version]

    def client_id(self, number: int) -> str:
        """The client id of one of them, from 1."""
        return self.name if self.count == 1 else f"{self.name}-{number}"


@dataclass(frozen=True)
class Persistence:
    """Where the broker keeps its journal: `persistence true`."""

    medium: str = _key(
        kinds.one_of("flash", "littlefs"),
        "a file, as on stock firmware (its wear is an estimate), or raw flash",
        "littlefs",
    )
    size: int = _key(
        *(kinds.size(32768, 1 << 28), "bytes of the region, or of the file system", 0),
        shown="256 KB, or the stock firmware's file system",
    )
    block: int = _key(kinds.size(1024, 65536, PAGE), "bytes that are erased together", 4096)
    endurance: int = _key(
        kinds.whole(1, 10**7), "erasures that a block bears (a typical NOR flash's)", 100_000
    )
    sync: str = _key(kinds.one_of("always", "interval"), "as persistence_sync", "always")


@dataclass(frozen=True)
class Scenario:
    """How long, whose limits, which chances."""

    duration: int = _key(kinds.span(1000), "how long it goes on")
    clients: tuple[Clients, ...] = _key(kinds.anything, "[[clients]], see below")
    title: str = _key(kinds.text, "for the report", "", "none")
    board: str = _key(kinds.one_of(*boards.names()), "whose limits and heap", "HOST")
    seed: int = _key(kinds.whole(0, 2**31 - 1), "of all that is left to chance", 1)
    late_after: int = _time("a message is late that took longer", 2000)
    links: dict[str, Link] = _key(kinds.anything, "[links.NAME], see below", None, "lan")
    limits: Any = _key(kinds.anything, "[limits]: instead of the board's", None, "the board's")
    settings: Any = _key(kinds.anything, "[settings]: as in slotmq.conf", None, "the defaults")
    power_cut_every: int = _time("the board's power fails so often", 0, 60_000, shown="never")
    power_cut_first: int = _time("exactly then, and then every so often", -1, shown="every")
    power_off_for: int = _time("and is back after so long", 5000, 1)
    persistence: Persistence | None = _key(
        kinds.anything, "[persistence], see below", None, "none"
    )


# How each stands in a file
TABLES = {
    "of the file": Scenario,
    "[[clients]]": Clients,
    "publish = [{ ... }, ...], of clients": Publish,
    "will = { ... }, of clients": Will,
    "[links.NAME]": Link,
    "[persistence]": Persistence,
}
