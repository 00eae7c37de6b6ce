"""Packets up to the largest, for quick and slow readers, and packets that are never complete."""

import pytest

from . import codec
from .codec import Ack
from .scene import each_version, spec

MAX_PACKET = 2_000_000  # of the HOST preset
# Around the sizes of the preset's buffers: held bytes, one read, one write, one packet.
SIZES = [1000, 1023, 1024, 1025, 16300, 16383, 16384, 16385, 32768, 200_000]
PROPERTIES = {"user": (("name", "v" * 1000),), "content_type": "bytes"}
OURS = pytest.mark.ours("mosquitto takes packets of any size")


def payload(size, seed=0):
    return bytes((i * 31 + seed) & 255 for i in range(251)) * (size // 251) + b"." * (size % 251)


def largest(topic, qos):
    """The payload that makes a packet of exactly MAX_PACKET bytes."""
    return payload(MAX_PACKET - 1 - 3 - 2 - len(topic) - (2 if qos else 0))


@each_version()
@pytest.mark.parametrize("qos", [0, 1, 2])
@pytest.mark.parametrize("size", SIZES)
def test_sizes_around_the_buffers_arrive(mqtt, topic, size, qos):
    about = {} if mqtt.codec is codec else PROPERTIES
    subscriber, publisher = mqtt.reader(topic, qos=qos), mqtt.connect()
    for seed in range(2):
        publisher.publish(topic, payload(size, seed), qos, **about)
    for seed in range(2):
        subscriber.receive(topic, payload(size, seed), qos, **about)
    subscriber.expect_silence()


@pytest.mark.parametrize("qos", [0, 1, 2])
@pytest.mark.parametrize("own", [False, True], ids=["another client", "its own publisher"])
def test_the_largest_packet_reaches(mqtt, topic, own, qos):
    subscriber = mqtt.reader(topic, qos=qos)
    (subscriber if own else mqtt.connect()).publish(topic, largest(topic, qos), qos)
    subscriber.receive(topic, largest(topic, qos), qos)
    subscriber.expect_silence()


@OURS
@pytest.mark.parametrize("qos", [0, 1, 2])
def test_a_larger_packet_ends_the_connection_at_its_header(mqtt, topic, qos):
    client = mqtt.connect()
    packet = codec.publish(topic, largest(topic, qos) + b"x", qos, 1)
    client.send(packet[:20])
    client.expect_closed()


def test_the_largest_retained_message(mqtt, topic):
    publisher = mqtt.connect()
    publisher.publish(topic, largest(topic, 1), 1, retain=True)
    subscriber = mqtt.reader(topic, qos=1)
    subscriber.receive(topic, largest(topic, 1), 1, retain=True)
    publisher.publish(topic, b"", retain=True)
    subscriber.receive(topic, b"")


@pytest.mark.parametrize("qos", [1, 2])
def test_a_slow_reader_gets_everything(mqtt, topic, qos):
    slow, publisher = mqtt.reader(topic, qos=qos, narrow=True), mqtt.connect()
    for seed in range(4):
        publisher.publish(topic, payload(400_000, seed), qos)
    for seed in range(4):
        slow.receive(topic, payload(400_000, seed), qos)
    slow.expect_silence()


@pytest.mark.ours("mosquitto queues a thousand of them")
@spec("4.6.0-6")
def test_a_reader_that_stops_loses_whole_qos_0_messages_only(mqtt, topic):
    stopped, quick = mqtt.connect(narrow=True), mqtt.connect()
    stopped.subscribe(f"{topic}/big", f"{topic}/end")
    quick.subscribe(f"{topic}/big")
    publisher = mqtt.connect()
    sent = [payload((16_500, 70_001, 300_000)[seed % 3], seed) for seed in range(150)]
    for one in sent:
        publisher.publish(f"{topic}/big", one)
        quick.receive(f"{topic}/big", one)
    found = [m.payload for m in stopped.publishes()]
    # (How many depends on whether the last that the system takes leaves in chunks: others are
    # queued behind such a one, see unit/delivery/test_behind_chunks.py.)
    assert found[:20] == sent[:20]
    assert found == [one for one in sent if one in found]
    assert len(found) < len(sent)
    publisher.publish(f"{topic}/end", b"small")
    stopped.receive(f"{topic}/end", b"small")


def test_half_packets_of_many_clients_do_not_mix(mqtt, topic):
    subscriber = mqtt.reader(f"{topic}/+", qos=1)
    packets = {i: codec.publish(f"{topic}/{i}", payload(50_000, i), 1, i) for i in range(1, 8)}
    publishers = {i: mqtt.connect() for i in packets}
    for start in (0, 3, 700, 20_000):
        end = {0: 3, 3: 700, 700: 20_000, 20_000: None}[start]
        for i, publisher in publishers.items():
            publisher.send(packets[i][start:end])
    for i, publisher in publishers.items():
        publisher.expect(Ack(codec.PUBACK, i))
    found = {m.topic: m.payload for m in subscriber.receive_many(7)}
    assert found == {f"{topic}/{i}": payload(50_000, i) for i in packets}


@pytest.mark.ours("mosquitto has no table of half packets")
@pytest.mark.config("limit reassembly 1\npacket_timeout 1000")
def test_a_client_that_occupies_the_only_reassembly_buffer_is_disconnected(mqtt, topic):
    subscriber = mqtt.reader(topic, qos=1)
    hog, waiting = mqtt.connect(), mqtt.connect()
    hog.send(codec.publish(topic, payload(100_000), 1, 1)[:30_000])
    hog.next_id()
    subscriber.ping()  # the hog is first
    waiting.send(codec.publish(topic, payload(90_000), 1, 1))
    subscriber.publish(f"{topic}/other", b"served meanwhile", 1)
    hog.expect_closed()
    waiting.expect(Ack(codec.PUBACK, 1))
    subscriber.receive(topic, payload(90_000), 1)


@pytest.mark.config("max_packet_size 20000000")
@pytest.mark.parametrize("size", [1_400_000, 3_000_000])
def test_a_larger_max_packet_size_is_served(mqtt, topic, size):
    """A list of 300 devices, retained."""
    publisher = mqtt.connect()
    publisher.publish(topic, payload(size), 1, retain=True)
    mqtt.reader(topic, qos=1).receive(topic, payload(size), 1, retain=True)
    publisher.publish(topic, b"", 1, retain=True)


@OURS
@pytest.mark.config("max_packet_size 20000000")
def test_what_finds_no_space_is_acknowledged_and_goes_nowhere(mqtt, topic):
    mqtt.connect().publish(topic, payload(17_000_000), 1, retain=True)
    mqtt.reader(topic, qos=1).expect_silence()
