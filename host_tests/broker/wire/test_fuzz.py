"""Random bytes: nothing raises, no other client is affected, and every table is empty again."""

import itertools

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from slotmq_dev.fuzz import TIGHT
from slotmq_dev.fuzz.feeding import Feeder, feed_many
from slotmq_dev.fuzz.inputs import CLEAN, Inputs, connect
from slotmq_dev.fuzz.link import Noticed, extent, kept_client_id
from slotmq_tools.codec import packet, section, string

from . import codec
from .client import Client

INPUTS = 10_000
SEED = 1

pytestmark = [pytest.mark.ours("mosquitto's own affair"), pytest.mark.config(TIGHT)]


@pytest.fixture
def feeder(broker):
    feeder = Feeder(broker.address)
    yield feeder
    feeder.clean()
    feeder.close()


@pytest.mark.timeout(400)  # ten seconds where nothing else runs
def test_ten_thousand_inputs_affect_no_other_client_and_leave_nothing(feeder):
    feed_many(feeder, SEED, INPUTS)
    feeder.clean()  # which counts what is left


# What any client might send.
texts = st.sampled_from([b"f", b"f/a", b"#", b"f/+", b"", b"+x"]) | st.binary(max_size=12)
bodies = st.binary(max_size=40) | st.builds(
    lambda number, text, rest: number + string(text) + rest,
    st.sampled_from([b"", b"\0\0", b"\0\1"]),
    texts,
    st.binary(max_size=12),
)
packets = st.builds(packet, st.integers(0, 255), bodies) | st.builds(
    packet, st.sampled_from([0x30, 0x31, 0x32, 0x34, 0x40, 0x50, 0x62, 0x70, 0x82, 0xA2]), bodies
)
connects = st.builds(
    connect,
    st.sampled_from([b"f1", b"f2", b""]),
    st.integers(0, 255).map(lambda flags: flags | CLEAN),
    st.just(b"") | st.binary(max_size=20),
    st.sampled_from([3, 4, 5]),
    st.just(b"\0") | st.binary(max_size=12).map(lambda props: section(props)),
)
sessions = st.tuples(connects, st.lists(packets, max_size=5)).map(lambda s: s[0] + b"".join(s[1]))
inputs = sessions | st.lists(packets, max_size=3).map(b"".join) | st.binary(max_size=60)
cuts = st.lists(st.integers(0, 120), max_size=6).map(sorted)


def pieces(data, places):
    """The bytes cut at these places; byte by byte if there is none."""
    if not places:
        return [data[i : i + 1] for i in range(len(data))]
    edges = [0, *(min(place, len(data)) for place in places), len(data)]
    return [data[a:b] for a, b in itertools.pairwise(edges) if a < b]


@given(batch=st.lists(st.tuples(inputs, cuts), min_size=1, max_size=6))
@example(batch=[(b"\x10", []), (b"", [1]), (connect(b"f1") * 2, [])])
@settings(
    max_examples=150,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
def test_no_input_affects_other_clients(feeder, batch):
    feeder.feed([pieces(data, places) for data, places in batch])


def test_the_same_seed_gives_the_same_inputs():
    def some(seed):
        made = Inputs(seed)
        return [made.cut(data) for data, _ in zip(made, range(50), strict=False)]

    assert some(7) == some(7)
    assert some(7) != some(8)


def test_most_inputs_reach_the_handlers():
    made = [data for data, _ in zip(Inputs(3), range(1000), strict=False)]
    connected = [data for data in made if data[:1] == b"\x10" and extent(data)[1]]
    assert len(connected) > 700
    assert sum(extent(data)[1] < len(data) for data in connected) > 500
    assert 300 < sum(data[8] == 5 for data in connected) < 600


def test_an_affected_witness_is_noticed(broker):
    feeder = Feeder(broker.address)
    intruder = Client(broker.address)
    intruder.connect(codec.connect("intruder"))
    intruder.publish("witness/of-what-nobody-else-names", b"noise")
    with pytest.raises(Noticed):
        feeder.check()
    feeder.abandon()
    intruder.disconnect()


def test_a_session_that_is_left_is_noticed(broker):
    feeder = Feeder(broker.address)
    keeper = Client(broker.address)
    keeper.connect(codec.connect("keeper", clean=False))
    keeper.subscribe("kept")
    keeper.disconnect()
    with pytest.raises(Noticed, match="clients/total6"):
        feeder.clean()
    keeper = Client(broker.address)
    keeper.connect(codec.connect("keeper", clean=True))
    keeper.disconnect()
    feeder.clean()
    feeder.close()


@pytest.mark.parametrize(
    ("data", "client_id"),
    [
        (connect(b"f1", 0), b"f1"),
        (connect(b"f1", 0, level=3), b"f1"),
        (connect(b"f" * 200, 0) + b"\xc0\x00", b"f" * 200),
        (connect(b"f1", CLEAN), None),
        (connect(b"f1", CLEAN, level=5), b"f1"),
        (connect(b"f1", 0, level=5, properties=section(b"\x11\0\0\0\1" * 40)), b"f1"),
        (b"\x10\x0a\x00\x04MQTT\x05\x02\x00\x3c", None),
        (b"\x30\x03\x00\x01f", None),
        (b"\x10", None),
        (b"", None),
    ],
)
def test_the_client_id_of_a_persistent_session_is_found(data, client_id):
    assert kept_client_id(data) == client_id
