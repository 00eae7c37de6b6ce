"""The load generator's codec: its packets byte by byte, and reading them however cut."""

import pytest

from slotmq_tools.dev.bench import codec


@pytest.mark.parametrize(
    ("packet", "expected"),
    [
        (codec.connect("me"), "10 0e 0004 4d515454 04 02 0000 0002 6d65"),
        (codec.connect("me", 5), "10 0f 0004 4d515454 05 02 0000 00 0002 6d65"),
        (codec.connect("me", 5, 2), "10 12 0004 4d515454 05 02 0000 03 22 0002 0002 6d65"),
        (codec.subscribe(3, ["a", "b/#"], 1), "82 0c 0003 0001 61 01 0003 622f23 01"),
        (codec.subscribe(3, ["a"], 1, 5), "82 07 0003 00 0001 61 01"),
        (codec.suback(3, 2, 1), "90 04 0003 01 01"),
        (codec.suback(3, 2, 1, 5), "90 05 0003 00 01 01"),
        (codec.unsubscribe(4, ["a"]), "a2 05 0004 0001 61"),
        (codec.publish("t", b"x"), "30 04 0001 74 78"),
        (codec.publish("t", b"x", 2, 258), "34 06 0001 74 0102 78"),
        (codec.publish("t", b"", retain=True), "31 03 0001 74"),
        (codec.publish("t", b"x", properties=codec.no_properties(5)), "30 05 0001 74 00 78"),
        (
            codec.publish("", b"x", 1, 7, properties=codec.alias(2)),
            "32 09 0000 0007 03 23 0002 78",
        ),
        (codec.acknowledge(codec.PUBREL, 7), "62 02 0007"),
    ],
)
def test_packets_byte_by_byte(packet: bytes, expected: str) -> None:
    assert packet == bytes.fromhex(expected)


@pytest.mark.parametrize(
    ("payload", "length"),
    [(124, "7f"), (125, "8001"), (16_380, "ff7f"), (16_381, "808001"), (2_097_149, "80808001")],
)
def test_remaining_length_at_its_boundaries(payload: int, length: str) -> None:
    packet = codec.publish("t", bytes(payload))
    assert packet[1 : 1 + len(length) // 2] == bytes.fromhex(length)


def test_a_stream_is_read_alike_however_it_is_cut() -> None:
    packets = [
        codec.publish("topic", bytes(200), 1, 5),
        codec.acknowledge(codec.PUBACK, 5),
        codec.PINGRESP,
        codec.publish("t", b""),
    ]
    stream = b"".join(packets)
    for size in range(1, len(stream) + 1):
        reader = codec.Reader()
        read = [
            reader.data[body:end]
            for start in range(0, len(stream), size)
            for _, body, end in reader.packets(stream[start : start + size])
        ]
        assert read == [packets[0][3:], b"\x00\x05", b"", packets[3][2:]]
        assert reader.data == b""


def test_the_first_byte_is_told() -> None:
    reader = codec.Reader()
    assert [first for first, _, _ in reader.packets(codec.CONNECTED + codec.DISCONNECT)] == [
        0x20,
        0xE0,
    ]


def test_a_length_without_end_is_refused() -> None:
    with pytest.raises(codec.BadPacket, match="length"):
        list(codec.Reader().packets(b"\x30\xff\xff\xff\xff\x01"))
