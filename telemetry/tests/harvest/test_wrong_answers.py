"""`slotmq harvest --broker`: malformed heads, answers, segments and foreign files are ignored or
named, and the rest is fetched.
"""

from typing import Any

import paho.mqtt.client as paho
import pytest
from paho.mqtt.enums import CallbackAPIVersion

from host_tests.broker.wire.process import BrokerProcess
from slotmq_telemetry.harvest import network
from telemetry.tests.conftest import A, B, Lab, identities, lines_of, recorder

from .recording import Recorder

HEAD = b"""{"board":"00000000000000b%b","boot":1,"first":0,"segment":%d,"length":9,"next":1,
"size":512}"""


@pytest.mark.parametrize(
    "head",
    [
        b"hello",
        b"[]",
        b'{"board":"00000000000000bb"}',
        HEAD % (b"a", 0),  # of another board than its topic says
        HEAD % (b"b", 4_000_000_000),  # segments
        (HEAD % (b"b", 0)).replace(b"512", b"1e999"),
    ],
)
def test_a_malformed_head_is_ignored(lab: Lab, head: bytes) -> None:
    one = recorder(A, 20)
    lab.attach(one)
    forged(lab.field, f"$SLOTMQ/record/{B}/head", head)
    lab.harvest()
    assert lab.identities() == identities(one)


def forged(field: BrokerProcess, topic: str, head: bytes) -> None:
    """A client publishes it, where the broker lets it, and goes."""
    client = paho.Client(CallbackAPIVersion.VERSION2)
    client.connect(*field.address)
    client.loop_start()
    client.publish(topic, head, 1, retain=True).wait_for_publish(10)
    client.disconnect()
    client.loop_stop()


@pytest.mark.parametrize("before", [True, False], ids=["in front of it", "behind it"])
def test_a_silent_board_blocks_no_other_board(lab: Lab, before: bool) -> None:
    one, other = recorder(A, 20), B.replace("b", "0" if before else "c")
    boards = lab.attach(one)
    head = (HEAD % (b"b", 9)).replace(B.encode(), other.encode())
    forged(lab.field, f"$SLOTMQ/record/{other}/head", head)
    said = lab.harvest(status=1).output
    assert said.count(f"board {other} does not answer") == said.count("does not answer") == 1
    assert lab.identities() == identities(one)
    one.message("room/1", b"later")
    one.start()
    boards.published()
    lab.harvest(status=1)
    assert lab.identities() == identities(one)


@pytest.mark.parametrize("of", [{"name": B}, {"newest": 4}], ids=["board", "number"])
def test_an_unrequested_segment_is_ignored(lab: Lab, of: dict[str, Any]) -> None:
    one, other = recorder(A, 20), Recorder(**{"name": A, **of})
    other.start()
    one.segments[1] = other.segments[other.newest]
    one.newest = 1
    one.start()
    lab.attach(one)
    said = lab.harvest().output
    assert f"segment 1: it is segment {other.newest} " in said and f"board {other.name}" in said
    assert {number for (_, _, number), _ in lab.segments()} == {0, 2}


def test_several_silent_boards_take_no_longer_than_one(lab: Lab) -> None:
    one, other = recorder(A, 60), recorder("00000000000000ab", 60)
    boards = lab.attach(one, other)
    for name in (b"a", b"b", b"c", b"d"):
        board = f"00000000000000b{name.decode()}"
        forged(lab.field, f"$SLOTMQ/record/{board}/head", HEAD % (name, 3))
    other.segments[0] = bytes(60)  # it answers, with nobody's name
    answers: list[bool] = []
    answer = network.Ring.answer

    def counted(ring: network.Ring, seconds: float) -> tuple[int, int, int, bytes] | None:
        found = answer(ring, seconds)
        answers.append(found is not None)
        return found

    lab.patch.setattr(network.Ring, "answer", counted)
    said = lab.harvest(status=1).output
    assert said.count("does not answer") == 4
    assert "segment 0: " in said and "not a segment" in said
    assert answers.count(False) < 12  # as often as two would be asked, one behind the other
    assert boards.requests[:2] == [(A, 0, 8), ("00000000000000ab", 0, 8)]
    assert lab.identities() == identities(one)


def test_a_segment_of_size_zero_writes_no_manifest_line(lab: Lab) -> None:
    one = recorder(A, 20)
    one.segments[0] = recorder(A, 1, size=0).segments[0]
    one.start()
    lab.attach(one)
    assert "segment 0: bad segment size" in lab.harvest().output
    assert [bundle.segment_size for bundle in lines_of(lab.path)] == [one.size]


def test_a_foreign_file_in_partial_is_named(lab: Lab) -> None:
    lab.attach(recorder(messages=20))
    (lab.path / "partial").mkdir(parents=True)
    (lab.path / "partial" / "x.seg").write_text("something else")
    said = lab.harvest(status=1).output.splitlines()[-1]
    assert said.startswith("Error: ") and "partial/x.seg: cut header" in said
