"""A scenario as pydantic models: one class for each table of the file, one field for each key.

`slotmq sim --keys` prints names, descriptions and defaults from here. In a model all times are
in milliseconds.
"""

from collections.abc import Iterator
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from .. import boards
from .units import size, time

VERSIONS = {"3.1": 3, "3.1.1": 4, "5.0": 5}
NUMBER_BYTES = 4  # each payload begins with the number of its message
PAGE = 256  # bytes of flash that are programmed together


def _board(name: str) -> str:
    if name not in boards.names():
        raise ValueError("must be one of " + ", ".join(boards.names()))
    return name


def _topic(text: str) -> str:
    if not text or text.startswith("$") or set("+#\0") & set(text):
        raise ValueError("must be a topic name, without + and #, that does not start with $")
    return text


def _filter(text: str) -> str:
    levels = text.split("/")
    is_good = "#" not in levels[:-1] and all(
        level in ("+", "#") or not set("+#") & set(level) for level in levels
    )
    if not text or "\0" in text or not is_good or (levels[0] == "$share" and len(levels) < 3):
        raise ValueError('must be a topic filter, as "home/+/temperature" or "alarm/#"')
    return text


Time = Annotated[int, time()]
Delay = Annotated[int, time("0 ms", "60 s")]
TimeOrZero = Annotated[int, time("0 ms")]
Size = Annotated[int, BeforeValidator(size)]
Qos = Literal[0, 1, 2]
Topic = Annotated[str, AfterValidator(_topic)]
Filters = Annotated[
    list[Annotated[str, AfterValidator(_filter)]],
    BeforeValidator(lambda value: [value] if isinstance(value, str) else value),
]


def _key(description: str, default: Any = ..., **bounds: Any) -> Any:
    return Field(default, description=description, **bounds)


class Table(BaseModel):
    """A table of the file."""

    model_config = ConfigDict(
        extra="forbid", frozen=True, strict=True, validate_default=True, allow_inf_nan=False
    )

    @model_validator(mode="after")
    def _check(self) -> Self:
        if problems := list(self.problems()):
            raise ValueError(problems)
        return self

    def problems(self) -> Iterator[str]:
        """Keys that contradict each other, each as `key: problem`."""
        yield from ()


class Link(Table):
    """The network between the broker and each client that names it"""

    latency: Delay = _key("one way", "5 ms")
    jitter: Delay = _key("a random delay up to this is added", "0 ms")
    bandwidth: Size = _key("bytes per second in each direction; 0: unlimited", 0, ge=0, le=1 << 30)
    loss: float = _key("percentage of packets that are retransmitted", 0, ge=0, le=50)
    retransmission: Annotated[int, time(most="60 s")] = _key(
        "the delay of a retransmitted packet", "300 ms"
    )
    buffer: Size = _key(
        "bytes that the broker's socket buffers for a client", 5840, ge=512, le=1 << 26
    )
    outage_for: Time | None = _key("how long an outage lasts; else there are none", None)
    outage_every: Time | None = _key(
        "from one outage to the next: half to one and a half times this", None
    )
    outage_first: TimeOrZero | None = _key(
        "the first outage starts then; the others follow exactly periodically", None
    )

    def problems(self) -> Iterator[str]:
        starts = self.outage_every is not None or self.outage_first is not None
        if starts and not self.outage_for:
            yield "outage_for: is missing"
        if self.outage_for and not starts:
            yield "outage_every: is missing, or outage_first"
        if self.outage_every and (self.outage_for or 0) * 2 > self.outage_every:
            yield "outage_for: must be at most half of outage_every"


class Publish(Table):
    """Messages that each client of the group publishes"""

    topic: Topic = _key("{n} is the client's number")
    every: Time | None = _key("from one message to the next; or give rate", None)
    rate: float | None = _key(
        "messages per second of each client; or give every", None, ge=0.00001, le=1000
    )
    payload: Size = _key("bytes", 20, ge=NUMBER_BYTES, le=1 << 20)
    qos: Qos = _key("0, 1 or 2", 0)
    retain: bool = _key("the RETAIN flag", False)
    burst: int = _key("messages that are sent together each time", 1, ge=1, le=1000)
    first: TimeOrZero | None = _key("time of the first one; else random", None)
    count: int = _key("publishes at most so often; 0: unlimited", 0, ge=0, le=10**9)

    @property
    def period(self) -> float:
        """Milliseconds from one message to the next."""
        return self.every or 1000 / (self.rate or 1)

    def problems(self) -> Iterator[str]:
        if (self.every is None) == (self.rate is None):
            yield "every: give either every or rate"


class Will(Table):
    """The will message of each client"""

    topic: Topic = _key("{n} is the client's number")
    payload: Size = _key("bytes", 20, ge=NUMBER_BYTES, le=65535)
    qos: Qos = _key("0, 1 or 2", 0)
    retain: bool = _key("the RETAIN flag", False)


class Clients(Table):
    """A group of identical clients"""

    name: str = _key("client ids are name-1, name-2, ...", pattern="^[A-Za-z0-9_-]{1,40}$")
    count: int = _key("number of clients", 1, ge=1, le=5000)
    version: Literal["3.1", "3.1.1", "5.0"] = _key("of MQTT", "3.1.1")
    publish: list[Publish] = _key("tables, see below", [])
    subscribe: Filters = _key("topic filters; {n} is the client's number", [])
    subscribe_qos: Qos = _key("of these subscriptions", 0)
    clean: bool = _key("Clean Session (Clean Start)", True)
    expiry: TimeOrZero | None = _key(
        'Session Expiry Interval, for version "5.0"; else unlimited', None
    )
    keep_alive: Annotated[int, time("0 s", "65535 s")] = _key("0: none", "1 min")
    will: Will | None = _key("a table, see below; else none", None)
    link: str = _key("the name of a table in links", "lan")
    start: TimeOrZero = _key("time of the first connect", "0 ms")
    sleeps: bool = _key("connects for each message, and disconnects after it", False)
    online_for: Time | None = _key("disconnects after this time; else stays connected", None)
    offline_for: Time | None = _key("connects again after this time", None)
    reconnect: Time = _key("pause before an attempt to connect again", "3 s")
    inflight: int = _key("QoS 1 and 2 messages sent and not acknowledged", 20, ge=1, le=65535)

    @property
    def level(self) -> int:
        """The protocol level in CONNECT."""
        return VERSIONS[self.version]

    def client_id(self, number: int) -> str:
        """The client id of one of them, from 1."""
        return self.name if self.count == 1 else f"{self.name}-{number}"

    def problems(self) -> Iterator[str]:
        if (self.online_for is None) != (self.offline_for is None):
            yield "online_for: needs offline_for, and the other way round"
        if self.sleeps and (self.online_for or not self.publish):
            yield "sleeps: is for a group that publishes and has no online_for"
        if self.expiry is not None and (self.level < 5 or self.clean):
            yield 'expiry: is for version "5.0" with clean = false'
        if self.level < 5 and any(text.startswith("$share/") for text in self.subscribe):
            yield 'subscribe: $share is for version "5.0"'


class Persistence(Table):
    """The broker's journal; with this table it runs with `persistence true`"""

    medium: Literal["flash", "littlefs"] = _key(
        "a file, as on stock firmware (wear is estimated), or raw flash", "littlefs"
    )
    size: Size | None = _key(
        "bytes; else the stock firmware's file system, or 256 KB", None, ge=32768, le=1 << 28
    )
    block: Size = _key("bytes that are erased together", 4096, ge=1024, le=65536, multiple_of=PAGE)
    endurance: int = _key("erasures of a block until it is worn out", 100_000, ge=1, le=10**7)
    sync: Literal["always", "interval"] = _key("as persistence_sync", "always")


class Scenario(Table):
    """The whole file"""

    duration: Annotated[int, time("1 s")] = _key("simulated time")
    clients: list[Clients] = _key("[[clients]], see below", min_length=1)
    title: str = _key("for the report", "")
    board: Annotated[str, AfterValidator(_board)] = _key("whose limits and heap are used", "HOST")
    seed: int = _key("of the random numbers", 1, ge=0, le=2**31 - 1)
    late_after: TimeOrZero = _key("a message that took longer is late", "2 s")
    links: Annotated[
        dict[str, Link],
        BeforeValidator(lambda value: {"lan": {}} | value if isinstance(value, dict) else value),
    ] = _key("[links.NAME], see below; lan is always there", {})
    limits: dict[str, Any] = _key("[limits], instead of the board's", {})
    settings: dict[str, Any] = _key("[settings], as in slotmq.conf", {})
    power_cut_every: Annotated[int, time("1 min")] | None = _key(
        "time between power failures of the board; else there are none", None
    )
    power_cut_first: TimeOrZero | None = _key(
        "time of the first power failure; else power_cut_every", None
    )
    power_off_for: Time = _key("how long a power failure lasts", "5 s")
    persistence: Persistence | None = _key(
        "[persistence], see below; else persistence false", None
    )

    def problems(self) -> Iterator[str]:
        if self.power_cut_every and self.power_cut_every <= self.power_off_for:
            yield "power_off_for: must be less than power_cut_every"
        names: set[str] = set()
        for at, group in enumerate(self.clients):
            ids = {group.client_id(number) for number in range(1, group.count + 1)}
            if taken := names & (ids | {group.name}):
                yield f"clients[{at}].name: another group has {min(taken)}"
            names |= ids | {group.name}
            if group.link not in self.links:
                yield f"clients[{at}].link: must be one of {', '.join(self.links)}"


# How each is written in a file
TABLES: dict[str, type[Table]] = {
    "of the file": Scenario,
    "[[clients]]": Clients,
    "publish = [{ ... }, ...], of clients": Publish,
    "will = { ... }, of clients": Will,
    "[links.NAME]": Link,
    "[persistence]": Persistence,
}
