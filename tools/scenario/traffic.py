"""Schedules connects, publishing, outages and power failures."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from ..sim.numbers import Numbers

if TYPE_CHECKING:
    from .device import Device
    from .model import Publish
    from .network import Network

_START_MS = 2500  # clients without `start` connect within this time
_GROUP_START_MS = 1000  # and those of a group with `start` within this one


class Source(NamedTuple):
    """One of a client's streams of messages."""

    device: Device
    stream: int
    source: Publish
    first: float


def schedule(network: Network) -> None:
    """Schedule everything that does not follow from other events."""
    devices = network.devices
    early = [device for device in devices if not device.group.start]
    for at, device in enumerate(early):
        if not device.group.sleeps or device.filters:
            network.at(at * _START_MS / len(early), device.connect)
        device.has_started = True
    for device in devices:
        if device.group.start:
            first = _ms(network, device.group.start) + device.numbers.below(_GROUP_START_MS)
            network.at(first, device.connect)
        _schedule_messages(network, device)
        _schedule_outages(network, device)
    scenario = network.scenario
    first = scenario.power_cut_first
    if first is None:
        first = scenario.power_cut_every
    if first is not None:
        network.at(_ms(network, first), lambda _: _cut_power(network))


def _ms(network: Network, since: float) -> float:
    """A time since the measured time began, on the network's clock."""
    return network.clock.ms - network.now() + since


# Messages


def _schedule_messages(network: Network, device: Device) -> None:
    for stream, source in enumerate(device.group.publish):
        numbers = Numbers(network.seed, 40000 + 17 * device.index + stream)
        random = numbers.below(1 << 16) * source.period / (1 << 16)
        first = random if source.first is None else source.first
        begun = Source(device, stream, source, max(first, device.group.start))
        _next_message(network, begun, 0)


def _next_message(network: Network, source: Source, done: int) -> None:
    # Calculated from the first one, so that rounding errors do not add up.
    most = source.source.count
    due = source.first + done * source.source.period
    if due < network.scenario.duration and not (most and done >= most):
        network.at(_ms(network, due), lambda _: _publish(network, source, done))


def _publish(network: Network, source: Source, done: int) -> None:
    for _ in range(source.source.burst):
        message = network.tracker.published(source.device, source.stream, source.source)
        source.device.publish(message, source.source)
    _next_message(network, source, done + 1)


# Outages and power failures


def _cut_power(network: Network) -> None:
    network.cut_power()
    every = network.scenario.power_cut_every
    if every:
        network.after(every, lambda _: _cut_power(network))


def _schedule_outages(network: Network, device: Device) -> None:
    link = network.scenario.links[device.group.link]
    if link.outage_for:
        random = device.numbers.below(1 << 16) * (link.outage_every or 0) / (1 << 16)
        first = random if link.outage_first is None else link.outage_first
        network.at(_ms(network, first), lambda _: _fail_network(network, device))


def _fail_network(network: Network, device: Device) -> None:
    link = network.scenario.links[device.group.link]
    assert link.outage_for
    device.network_fails()
    network.after(link.outage_for, lambda _: device.network_returns())
    if link.outage_every:
        pause: float = link.outage_every
        if link.outage_first is None:
            pause *= 0.5 + device.numbers.below(1 << 16) / (1 << 16)
        network.after(max(pause, link.outage_for + 1), lambda _: _fail_network(network, device))
