"""Numbered messages: lost, duplicate, altered and reordered ones are detected."""

from typing import Any

import pytest

from slotmq_dev.bench.numbered import Flow, Series, Violation, read_numbers
from slotmq_tools import codec

SIZE = len(codec.publish(4, b"t/0", bytes(16)))


def series(**options: Any) -> Series:
    return Series(3, ["t/0"], burst=4, **options)


def cut(burst: bytes) -> list[bytes]:
    return [burst[start : start + SIZE] for start in range(0, len(burst), SIZE)]


def exact_flow(**options: int) -> tuple[Flow, list[bytes]]:
    sent = series()
    flow = Flow(sent, exact=True, **options)
    burst = sent.next_burst()
    flow.publish(burst)
    return flow, cut(burst)


def test_messages_have_consecutive_numbers() -> None:
    sent = series()
    packets = cut(sent.next_burst() + sent.next_burst())
    payload = SIZE - 16
    assert [read_numbers(packet, payload) for packet in packets] == [(3, n) for n in range(8)]
    assert sent.sent == 8


def test_bursts_in_flight_share_no_packet_id() -> None:
    sent = Series(0, ["t"], qos=1, burst=2, depth=2)
    ids = []
    for _ in range(3):
        for _, body in codec.Reader().packets(sent.next_burst()):
            ids.append(int.from_bytes(body[3:5], "big"))
    assert ids == [1, 2, 3, 4, 1, 2]


def test_topics_take_turns_across_bursts() -> None:
    sent = Series(0, ["a", "b", "c", "d"], burst=2)
    topics = []
    for _ in range(3):
        topics += [body[2:3] for _, body in codec.Reader().packets(sent.next_burst())]
    assert topics == [b"a", b"b", b"c", b"d", b"a", b"b"]


@pytest.mark.parametrize("size", [1, 7, SIZE, SIZE + 1, 4 * SIZE])
def test_messages_settle_however_the_bytes_are_split(size: int) -> None:
    flow, packets = exact_flow()
    stream = b"".join(packets)
    for start in range(0, len(stream), size):
        flow.take_bytes(stream[start : start + size])
    assert (flow.due, flow.settled) == (0, 4)


def test_a_flow_gets_every_second_message() -> None:
    flow, packets = exact_flow(first=1, step=2)
    flow.take_bytes(packets[1] + packets[3])
    assert (flow.due, flow.settled) == (0, 2)


def test_a_burst_must_be_a_multiple_of_the_step() -> None:
    with pytest.raises(ValueError, match="dealt"):
        Flow(series(), step=3)


@pytest.mark.parametrize(
    ("order", "fault"),
    [
        ([0, 2], "lost"),
        ([0, 1, 1], "duplicate"),
        ([1, 0], "out of order"),
        ([0, 1, 2, 3, 3], "late"),
    ],
)
def test_faults_in_the_bytes_are_detected(order: list[int], fault: str) -> None:
    flow, packets = exact_flow()
    with pytest.raises(Violation, match="instead of"):
        flow.take_bytes(b"".join(packets[index] for index in order))


def test_an_altered_byte_is_detected() -> None:
    flow, packets = exact_flow()
    with pytest.raises(Violation):
        flow.take_bytes(packets[0][:-1] + b"!")


@pytest.mark.parametrize("numbers", [[1], [0, 0], [0, 2], [0, 1, 2, 3, 4]])
def test_faults_in_the_numbers_are_detected(numbers: list[int]) -> None:
    sent = series()
    flow = Flow(sent)
    flow.publish(sent.next_burst())

    def take() -> None:
        for number in numbers:
            flow.take_number(number)
            flow.settle()

    with pytest.raises(Violation, match="publisher 3"):
        take()
