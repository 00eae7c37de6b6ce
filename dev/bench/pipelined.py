"""Workloads that publish as fast as possible, by number of publishers and subscribers."""

from dataclasses import dataclass

from slotmq_tools import codec

from .client import Address, Client
from .numbered import Flow, Series
from .pipeline import ByteSubscriber, Pipeline, Publisher, Subscriber
from .web import WebClient

_LEVEL = "bench/p{publisher:02}/d{device:04}"


@dataclass(frozen=True)
class Shape:
    """How many clients there are, and how they publish.

    As many subscribers as publishers make pairs; a single one on either side is
    connected with all on the other. With `wildcards`, each publish matches
    exactly one of that many subscriptions, which are dealt to the subscribers.
    With `level` 5 all speak MQTT 5.0, with `receiver_level` the subscribers speak
    another version; with `alias` topics are left away, towards the broker and,
    where it can, towards the subscribers. With `web` it is MQTT over WebSocket.
    `props` are properties of each PUBLISH, `of_filter` those of each SUBSCRIBE; with `group` the
    subscribers are one, as members of a shared subscription that take turns.
    """

    publishers: int = 10
    subscribers: int = 10
    qos: int = 0
    payload: int = 64
    burst: int = 100
    depth: int = 2
    wildcards: int = 0
    level: int = 4
    alias: bool = False
    receiver_level: int = 0
    web: bool = False
    props: bytes = b""
    of_filter: bytes = b""
    group: bool = False

    def __post_init__(self) -> None:
        if 1 not in (self.publishers, self.subscribers) and self.publishers != self.subscribers:
            raise ValueError("publishers and subscribers are pairs, or there is one of either")


def connect(shape: Shape, address: Address) -> Pipeline:
    """All clients connected and subscribed, the subscribers first.

    Publishers with aliases have told these before anybody is there to get the message.
    """
    series = [_series(shape, publisher) for publisher in range(shape.publishers)]
    early = [_publishing(shape, address, each) for each in series if shape.alias]
    flows: list[Flow] = []
    by_publisher: list[list[Flow]] = [[] for _ in series]
    subscribers: list[ByteSubscriber | Subscriber] = []
    for index in range(shape.subscribers):
        client = _client(shape, address, f"subscriber{index}", _receiver_level(shape))
        client.subscribe(_filters(shape, index), shape.qos, shape.of_filter)
        of_client = _flows(shape, series, index)
        for publisher, flow in of_client.items():
            by_publisher[publisher].append(flow)
        flows += of_client.values()
        subscribers.append(_subscriber(shape, client, of_client))
    publishers = []
    for index, each in enumerate(series):
        client = early[index] if early else _publishing(shape, address, each)
        sender = Publisher(client, each, by_publisher[index], qos=shape.qos, depth=shape.depth)
        publishers.append(sender)
    return Pipeline(publishers, subscribers, flows)


def _client(shape: Shape, address: Address, name: str, level: int) -> Client:
    if shape.web:
        return WebClient(address, name, level=level)
    return Client(address, name, level=level, aliases=1 if shape.alias else 0)


def _receiver_level(shape: Shape) -> int:
    return shape.receiver_level or shape.level


def _publishing(shape: Shape, address: Address, series: Series) -> Client:
    client = _client(shape, address, f"publisher{series.publisher}", shape.level)
    if shape.alias:
        client.send(series.first_with_alias + codec.PING)
        client.expect(codec.PONG)
    return client


def _series(shape: Shape, publisher: int) -> Series:
    devices = range(max(1, shape.wildcards))
    return Series(
        publisher,
        [_LEVEL.format(publisher=publisher, device=device) for device in devices],
        qos=shape.qos,
        payload=shape.payload,
        burst=shape.burst,
        depth=shape.depth,
        level=shape.level,
        alias=1 if shape.alias else 0,
        props=shape.props,
    )


def _subscriber(
    shape: Shape, client: Client, flows: dict[int, Flow]
) -> ByteSubscriber | Subscriber:
    if _exact(shape):
        return ByteSubscriber(client, *flows.values())
    return Subscriber(client, flows, shape.qos, _receiver_level(shape))


def _flows(shape: Shape, series: list[Series], subscriber: int) -> dict[int, Flow]:
    """The flows to this subscriber, by publisher."""
    if shape.wildcards:
        step = shape.subscribers
        return {0: Flow(series[0], first=subscriber, step=step, exact=_exact(shape))}
    if shape.group:  # the first message goes to the last member
        step = shape.subscribers
        return {0: Flow(series[0], first=step - 1 - subscriber, step=step, exact=_exact(shape))}
    return {
        publisher: Flow(series[publisher], exact=_exact(shape))
        for publisher in _publishers_of(shape, subscriber)
    }


def _filters(shape: Shape, subscriber: int) -> list[str]:
    if shape.wildcards:
        devices = range(subscriber, shape.wildcards, shape.subscribers)
        return [_wildcard(device) for device in devices]
    return [
        ("$share/g/" if shape.group else "") + _LEVEL.format(publisher=publisher, device=0)
        for publisher in _publishers_of(shape, subscriber)
    ]


def _wildcard(device: int) -> str:
    """A filter that only this device's topic matches, with + or with + and #."""
    return f"bench/+/d{device:04}" + ("/#" if device % 2 else "")


def _publishers_of(shape: Shape, subscriber: int) -> range:
    if shape.subscribers == shape.publishers:
        return range(subscriber, subscriber + 1)
    return range(shape.publishers)


def _exact(shape: Shape) -> bool:
    """Whether each subscriber knows the expected bytes."""
    changed = shape.alias or shape.of_filter or shape.props[:1] == b"\2"  # it expires
    if shape.qos or changed or _receiver_level(shape) != shape.level:
        return False
    return shape.publishers == 1 or shape.subscribers == shape.publishers
