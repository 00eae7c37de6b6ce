"""The tools' MQTT codec: encoded packets byte by byte, decoding, and splitting a stream."""

import pytest

from slotmq_tools import codec


@pytest.mark.parametrize(
    ("packet", "expected"),
    [
        (codec.connect("me"), "10 0e 0004 4d515454 04 02 0000 0002 6d65"),
        (
            codec.connect(b"me", False, None, 60, level=3),
            "10 10 0006 4d5149736470 03 00 003c 0002 6d65",
        ),
        (codec.connect("me", level=5), "10 0f 0004 4d515454 05 02 0000 00 0002 6d65"),
        (
            codec.connect(b"me", level=5, properties=b"\x22\0\2"),
            "10 12 0004 4d515454 05 02 0000 03 22 0002 0002 6d65",
        ),
        (
            codec.connect(b"me", will=(b"w", b"x", 1, True)),
            "10 14 0004 4d515454 04 2e 0000 0002 6d65 0001 77 0001 78",
        ),
        (codec.subscribe(3, ("a", 1), (b"b/#", 1)), "82 0c 0003 0001 61 01 0003 622f23 01"),
        (codec.subscribe(3, (b"a", 1), properties=b""), "82 07 0003 00 0001 61 01"),
        (codec.suback(3, [1, 1]), "90 04 0003 01 01"),
        (codec.suback(3, [1, 1], b""), "90 05 0003 00 01 01"),
        (codec.unsubscribe(4, b"a"), "a2 05 0004 0001 61"),
        (codec.publish(b"t", b"x"), "30 04 0001 74 78"),
        (codec.publish(b"t", b"x", 2, 258), "34 06 0001 74 0102 78"),
        (codec.publish(b"t", b"", retain=True), "31 03 0001 74"),
        (codec.publish(b"t", b"", 1, 2, dup=True), "3a 05 0001 74 0002"),
        (codec.publish(b"t", b"x", properties=b""), "30 05 0001 74 00 78"),
        (codec.publish(b"", b"x", 1, 7, properties=b"\x23\0\2"), "32 09 0000 0007 03 23 0002 78"),
        (codec.ack(codec.PUBREL, 7), "62 02 0007"),
        (codec.ack(codec.PUBREC, 7, 0x97, b""), "50 04 0007 97 00"),
        (codec.disconnect(4), "e0 01 04"),
    ],
)
def test_packets_byte_by_byte(packet: bytes, expected: str) -> None:
    assert packet == bytes.fromhex(expected)


@pytest.mark.parametrize(
    ("payload", "length"),
    [(124, "7f"), (125, "8001"), (16_380, "ff7f"), (16_381, "808001"), (2_097_149, "80808001")],
)
def test_remaining_length_at_its_boundaries(payload: int, length: str) -> None:
    packet = codec.publish(b"t", bytes(payload))
    assert packet[1 : 1 + len(length) // 2] == bytes.fromhex(length)
    assert codec.extent(packet) == (1 + len(length) // 2, len(packet))


def test_a_stream_is_split_into_packets_at_any_chunk_size() -> None:
    packets = [
        codec.publish(b"topic", bytes(200), 1, 5),
        codec.ack(codec.PUBACK, 5),
        codec.PONG,
        codec.publish(b"t", b""),
    ]
    stream = b"".join(packets)
    for size in range(1, len(stream) + 1):
        reader = codec.Reader()
        read = [
            each
            for start in range(0, len(stream), size)
            for each in reader.packets(stream[start : start + size])
        ]
        bodies = [packets[0][3:], b"\x00\x05", b"", packets[3][2:]]
        assert read == list(zip((0x32, 0x40, 0xD0, 0x30), bodies, strict=True))
        assert reader.rest == b""


def test_a_length_of_more_than_four_bytes_is_refused() -> None:
    with pytest.raises(codec.Malformed, match="length"):
        codec.Reader().packets(b"\x30\xff\xff\xff\xff\x01")


@pytest.mark.parametrize("level", [4, 5])
def test_a_publish_is_decoded(level: int) -> None:
    props = codec.of(level, b"\x0b\x81\x01")
    data = codec.publish(b"t", b"x", 1, 7, True, True, props)
    assert codec.take(data[:-1], level) is None
    packet = codec.take(data + codec.PONG, level)
    assert packet
    assert (packet.kind, packet.size) == (codec.PUBLISH, len(data))
    assert (packet.qos, packet.retain, packet.dup, packet.packet_id) == (1, 1, 1, 7)
    assert (packet.topic, packet.payload) == (b"t", b"x")
    assert list(packet.identifiers) == ([129] if level == 5 else [])


@pytest.mark.parametrize(
    ("level", "data", "why"),
    [
        (4, "d0 8000", "shortest"),
        (4, "d0 01 00", "PINGRESP"),
        (4, "40 02 0000", "packet id 0"),
        (4, "60 02 0001", "flags"),
        (4, "20 02 0101", "session"),
        (4, "30 04 0001 2b 78", "wildcard"),
        (4, "10 02 0001", "type 1"),
        (5, "30 04 0000 00 78", "neither topic nor alias"),
        (5, "30 08 0001 74 04 01 01 01 01", "twice"),
        (5, "40 06 0001 00 02 01 01", "belong"),
        (5, "40 05 0001 00 05 1f", "longer than their packet"),
        (5, "40 03 0001 92", "reason code"),
        (5, "20 06 00 00 03 21 0000", "is 0"),
        (5, "20 05 00 00 02 25 02", "is 2"),
        (5, "30 05 0001 74 80 00", "shortest"),
        (5, "40 08 0001 00 04 1f 0001 ff", "UTF-8"),
        (5, "90 04 0001 00 03", "code 3"),
        (4, "90 03 0001 03", "code 3"),
        (4, "30 03 0001 00", "U.0000"),
    ],
)
def test_packets_that_a_broker_may_not_send_are_refused(level: int, data: str, why: str) -> None:
    with pytest.raises(codec.Malformed, match=why):
        codec.take(bytes.fromhex(data), level)


@pytest.mark.parametrize(
    ("topic_filter", "yes", "no"),
    [
        ("a/#", "a a/b a/b/c a/", "b b/a"),
        ("a/+", "a/b a/", "a a/b/c"),
        ("+/b", "a/b /b", "b $a/b"),
        ("a", "a", "a/b /a"),
        ("#", "a a/b /", "$SYS $SYS/a"),
        ("$SYS/#", "$SYS $SYS/a", "SYS"),
    ],
)
def test_topics_match_filters(topic_filter: str, yes: str, no: str) -> None:
    assert [topic for topic in yes.split() if not codec.matches(topic_filter, topic)] == []
    assert [topic for topic in no.split() if codec.matches(topic_filter.encode(), topic)] == []
