"""MQTT 5.0 allocates nothing: properties, aliases, identifiers, groups, expiry."""

import time
from collections.abc import Callable, Iterator

import pytest

from host_tests.broker.wire5.codec import Will

from .traffic5 import Crowd, Traffic, connect
from .watched import Watched

ROUNDS = 300


@pytest.fixture
def traffic(watched: Watched) -> Iterator[Traffic]:
    running = Traffic(watched.address)
    yield running
    running.close()
    watched.alone()


@pytest.fixture
def crowd(watched: Watched) -> Iterator[Crowd]:
    running = Crowd(watched.address)
    yield running
    running.close()
    watched.alone()


def tables(watched: Watched) -> dict[str, int]:
    """The entries in each table; not the heap, since counting takes some."""
    counts = watched.counts()
    del counts["used"], counts["loaded"]
    return counts


@pytest.mark.parametrize("what", [Traffic.message, Traffic.in_chunks, Traffic.refused])
def test_messages_with_properties_and_their_refusals_allocate_nothing(
    watched: Watched, traffic: Traffic, what: Callable[[Traffic, int], None]
) -> None:
    with watched.locked() as seen:
        for n in range(ROUNDS):
            what(traffic, n)
    assert seen["changed"] == 0
    assert seen["turns"] > ROUNDS


def test_a_reader_that_blocks_allocates_nothing(watched: Watched, crowd: Crowd) -> None:
    crowd.block()
    with watched.locked() as seen:
        for _ in range(10):
            crowd.block()
    assert seen["changed"] == 0
    assert seen["blocked"] >= 10
    assert seen["woken"] == seen["blocked"]


def test_a_shared_subscription_allocates_nothing(watched: Watched, crowd: Crowd) -> None:
    with watched.locked() as seen:
        for n in range(ROUNDS):
            crowd.shared(n)
    assert seen["changed"] == 0
    assert min(crowd.got) > ROUNDS // 4


def test_messages_that_expire_allocate_nothing(watched: Watched, crowd: Crowd) -> None:
    crowd.expire(0)  # the alias of the first topic stays
    before = tables(watched)
    with watched.locked() as seen:
        crowd.expire(1)
    assert seen["changed"] == 0
    deadline = time.monotonic() + 60  # the sweep is code that is loaded while messages expire
    while tables(watched) != before:
        assert time.monotonic() < deadline, tables(watched)
        time.sleep(0.5)


def test_a_session_that_expires_with_its_will_allocates_nothing(watched: Watched) -> None:
    before = tables(watched)
    reader = connect(watched.address, "reader", session_expiry=0)
    reader.subscribe("will", qos=1)
    reader.subscribe("$share/group/some/topic", qos=1)
    will = Will("will", b"gone", 1, properties={"will_delay": 2, "message_expiry": 9})
    leaver = connect(watched.address, "leaver", session_expiry=3, will=will)
    leaver.subscribe("$share/group/some/topic", "$share/other/some/topic", "some/+", qos=2)
    leaver.drop()
    for _ in range(4):
        reader.publish("some/topic", b"x", 1)
        reader.receive("some/topic", b"x", 1)
    with watched.locked() as seen:
        reader.receive("will", b"gone", 1, message_expiry=9)
        reader.wait(1.5)
    assert seen["changed"] == 0
    reader.sock.close()
    after = watched.alone()
    assert {name: after[name] for name in before} == before


def test_messages_leave_every_table_as_it_was(watched: Watched, traffic: Traffic) -> None:
    before = tables(watched)
    for n in range(30):
        traffic.message(n)
        traffic.in_chunks(n)
        traffic.refused(n)
    assert tables(watched) == before


def test_shared_and_blocked_messages_leave_every_table_as_it_was(
    watched: Watched, crowd: Crowd
) -> None:
    crowd.block()
    for _ in crowd.members:
        crowd.shared(1)  # each has an alias now
    before = tables(watched)
    for n in range(30):
        crowd.shared(n)
    crowd.block()
    assert tables(watched) == before
