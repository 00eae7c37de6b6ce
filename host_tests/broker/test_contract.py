"""The functions on bytes against a second implementation of the standard.

On CPython; test_twins.py shows that the MicroPython versions do the same.
"""

from hypothesis import given
from hypothesis import strategies as st

from host_tests.broker.wire import codec
from slotmq.fast import bytes_cpython as hot

MOST = 1000
BAD_PACKET, TOO_LARGE = -1, -2
LEVELS = st.sampled_from(["", "a", "b", "$c", "+", "#", "a+", "#b"])
TEXTS = st.lists(LEVELS, min_size=1, max_size=6).map("/".join)
NAMES = ["", "a", "b", "$c"]
TOPICS = st.lists(st.sampled_from(NAMES), min_size=1, max_size=6).map("/".join).filter(bool)
FILTERS = st.builds(
    lambda levels, last: "/".join([*levels, *last]),
    st.lists(st.sampled_from([*NAMES, "+"]), max_size=5),
    st.sampled_from([["#"], ["+"], ["a"], ["b", ""]]),
)


def levels_of(topic_filter: str) -> int:
    """By [4.7.1-2, 4.7.1-3]: a wildcard has a level for itself, # is the last one."""
    levels = topic_filter.split("/")
    alone = all(level in ("+", "#") or not set(level) & {"+", "#"} for level in levels)
    return len(levels) if topic_filter and alone and "#" not in levels[:-1] else 0


def matches(levels: list[str], topic: list[str]) -> bool:
    """By [4.7.1], level by level."""
    if not levels:
        return not topic
    if levels[0] == "#":
        return True
    if not topic or levels[0] not in ("+", topic[0]):
        return False
    return matches(levels[1:], topic[1:])


@given(TEXTS)
def test_valid_filters(text: str) -> None:
    data = b"?" + text.encode() + b"?"
    assert hot.filter_ok(data, 1, len(data) - 2) == levels_of(text)


@given(FILTERS, TOPICS)
def test_topics_and_filters(topic_filter: str, topic: str) -> None:
    assert levels_of(topic_filter)
    hidden = topic.startswith("$") and topic_filter[0] in "+#"
    wanted = not hidden and matches(topic_filter.split("/"), topic.split("/"))
    one, other = topic_filter.encode(), topic.encode()
    assert hot.topic_matches(one, 0, len(one), b"?" + other, 1, len(other)) == wanted


@given(st.text(alphabet=st.characters(codec="utf-8"), max_size=8))
def test_texts_without_control_characters_are_valid(text: str) -> None:
    data = text.encode()
    is_plain = not any(is_odd(ord(char)) for char in text)
    assert hot.utf8_ok(data, 0, len(data), 0) == is_plain
    assert hot.utf8_ok(data, 0, len(data), 2) == ("\0" not in text)
    name = bool(text) and not set(text) & {"+", "#"} and is_plain
    assert hot.utf8_ok(data, 0, len(data), 1) == name


def is_odd(point: int) -> bool:
    """A control character or a noncharacter, of which mosquitto takes none."""
    is_control = point < 0x20 or 0x7F <= point < 0xA0
    return is_control or 0xFDD0 <= point <= 0xFDEF or point & 0xFFFE == 0xFFFE


def test_each_character() -> None:
    for point in range(0x110000):
        if not 0xD800 <= point < 0xE000:
            data = chr(point).encode()
            assert hot.utf8_ok(data, 0, len(data), 0) == (not is_odd(point)), hex(point)


@given(st.binary(max_size=12))
def test_bytes_that_are_no_utf8_are_invalid(data: bytes) -> None:
    wanted = data.decode("utf-8", "replace").encode() == data and b"\0" not in data
    assert hot.utf8_ok(data, 0, len(data), 2) == wanted


PUBLISHES = st.builds(
    codec.publish,
    topic=st.text(alphabet="ab/", min_size=1, max_size=200),
    payload=st.binary(max_size=300),
    qos=st.sampled_from([0, 1, 2]),
    packet_id=st.integers(1, 65535),
    retain=st.booleans(),
)


@given(PUBLISHES, st.binary(max_size=5), st.data())
def test_a_publish_is_read_as_it_was_written(
    data: bytes, before: bytes, cut: st.DataObject
) -> None:
    pkt = hot.new_packet(MOST)
    start, end = len(before), len(before) + len(data)
    assert hot.next_packet(before + data + b"more", start, end, pkt) == len(data)
    topic = (before + data)[pkt[7] : pkt[7] + pkt[8]]
    packet_id = pkt[6] if data[0] & 6 else 0
    again = codec.publish(
        topic,
        (before + data)[pkt[9] : pkt[4]],
        qos=data[0] >> 1 & 3,
        packet_id=packet_id,
        retain=bool(data[0] & 1),
    )
    assert again == data
    less = cut.draw(st.integers(0, len(data) - 1))
    assert hot.next_packet(before + data, start, start + less, pkt) == 0
    assert pkt[5] in (0, len(data))


@given(st.binary(max_size=40))
def test_random_bytes_are_a_packet_or_part_of_one_or_malformed(data: bytes) -> None:
    pkt = hot.new_packet(20)
    n = hot.next_packet(data, 0, len(data), pkt)
    if n > 0:
        assert n <= min(20, len(data))
        assert pkt[2] + n == pkt[4]
    elif n == 0:
        assert pkt[5] == 0 or len(data) < pkt[5] <= 20
    else:
        assert n in (BAD_PACKET, TOO_LARGE)
        # More bytes do not make it valid.
        assert hot.next_packet(data + b"\0" * 9, 0, len(data) + 9, pkt) == n
