"""`slotmq harvest --broker`: each segment is fetched once, despite lost and damaged answers."""

import time
from pathlib import Path
from typing import Any

import pytest

from slotmq_telemetry.harvest import network
from telemetry.tests.conftest import A, B, Lab, cli, identities, recorder


def test_all_boards_come_once_in_one_bundle_the_largest_last(lab: Lab) -> None:
    """It may be one that somebody has made up, and a harvest that is ended has the others."""
    one, other = recorder(A, 700), recorder(B, 300)
    other.start()
    other.message("later", b"boot 2")
    boards = lab.attach(one, other)
    said = lab.harvest().output
    assert len(lab.lines()) == 1
    assert f"{len(one.segments) + len(other.segments)} segments" in said
    order = [board for board, _, offset in boards.requests if offset > 8]
    assert order == sorted(order, reverse=True) and {*order} == {A, B}
    assert lab.identities() == identities(one, other)
    before = {path: path.read_bytes() for path in lab.path.rglob("*") if path.is_file()}
    assert "nothing new" in lab.harvest().output
    assert before == {path: path.read_bytes() for path in lab.path.rglob("*") if path.is_file()}


def test_of_a_segment_that_grew_only_the_rest_is_fetched(lab: Lab) -> None:
    """The board is still writing it; and then it has begun the next ones."""
    one = recorder(messages=30)
    boards = lab.attach(one)
    lab.harvest()
    length = len(one.segments[0])
    one.message("room/1", b"one more")
    boards.published()
    boards.requests.clear()
    lab.harvest()
    assert boards.requests == [(A, 0, 0), (A, 0, length)]  # its header, and the rest
    assert lab.identities() == identities(one)
    for number in range(100):
        one.message("room/1", b"%d" % number)
    one.start()
    boards.published()
    lab.harvest()
    assert lab.identities() == identities(one)
    boards.requests.clear()
    assert "nothing new" in lab.harvest().output
    assert {segment for _, segment, _ in boards.requests} == {0, one.newest}


@pytest.mark.parametrize(
    "spoil",
    [
        lambda count, answer: None if count % 5 == 0 else answer,
        lambda count, answer: answer[: count % 12] if count % 5 == 0 else answer,
        lambda count, answer: answer[:200] + b"?" + answer[201:] if count == 2 else answer,
    ],
    ids=["lost", "cut", "changed"],
)
def test_a_lost_or_damaged_answer_is_asked_for_again(lab: Lab, spoil: Any) -> None:
    one = recorder(messages=120)
    lab.attach(one).spoil = spoil
    assert "at byte" not in lab.harvest().output
    assert lab.identities() == identities(one)


def test_a_record_that_is_half_on_flash_is_left_for_the_next_harvest(lab: Lab) -> None:
    one = recorder(messages=10)
    whole = one.segments[0]
    one.message("room/0", b"whole by then")
    full = one.segments[0]
    one.segments[0] = full[: len(whole) + 9]
    boards = lab.attach(one)
    assert "at byte" not in lab.harvest().output
    assert len(lab.identities()) == len(identities(one))
    one.segments[0] = full
    boards.published()
    lab.harvest()
    assert lab.identities() == identities(one)


def test_an_interrupted_harvest_goes_on_where_it_stopped(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = recorder(messages=300)
    boards = lab.attach(one)
    boards.spoil = lambda count, answer: answer if count < 12 else None
    lab.patch.setattr(network, "_ATTEMPTS", 1)
    said = lab.harvest(status=1)
    assert "does not answer" in said.output
    assert {number for (_, _, number), _ in lab.segments()} == {0}  # all that was whole
    stopped = max((number, offset) for _, number, offset in boards.requests[:11])
    boards.spoil = lambda _count, answer: answer
    boards.requests.clear()
    lab.harvest()
    again = [(number, offset) for _, number, offset in boards.requests if offset]
    assert stopped[0] > 0 and min(again) >= stopped
    assert lab.identities() == identities(one)


def test_overwritten_segments_are_reported_and_the_rest_is_fetched(lab: Lab) -> None:
    one = recorder(messages=300)
    lab.attach(one)
    del one.segments[0]  # between its head and the request
    assert f"board {A}: segment 0 was" in lab.harvest().output
    assert lab.identities() == identities(one)


def test_an_unreadable_newest_segment_seals_none(lab: Lab) -> None:
    """Power failed when the board had begun it; what seals those before is its next start."""
    one = recorder(A, 20)
    one.start()
    one.segments[one.newest] = one.segments[one.newest][:9]
    boards = lab.attach(one)
    assert "segment 1: cut header" in lab.harvest().output
    assert [number for _, _, number, _ in lab.lines()[0]["growing"]] == [0]
    one.start()
    boards.published()
    lab.harvest()
    assert [number for _, _, number, _ in lab.lines()[1]["growing"]] == [2]
    assert [number for _, _, number, *_ in lab.lines()[1]["segments"]] == [0, 2]


def test_a_board_without_what_its_head_names_is_named(lab: Lab) -> None:
    one, other = recorder(A, 300), recorder(B, 20)
    lab.attach(one, other)
    one.segments.clear()
    said = lab.harvest(status=1).output
    assert f"board {A}: its head names segments 0 to {one.newest}, and" in said
    assert lab.identities() == identities(other)


@pytest.mark.parametrize("boot", [7, 4711])
def test_a_ring_that_was_made_anew_is_fetched_whole_at_every_harvest(lab: Lab, boot: int) -> None:
    """Its first segments are harvested again and again, those behind have old numbers too."""
    boards = lab.attach(recorder(messages=1000))
    lab.harvest()
    before = lab.identities()
    fresh = recorder(messages=100, boot=boot)
    boards.recorders[A] = fresh
    for _ in range(2):
        boards.published()
        lab.harvest()
        assert lab.identities() == before | identities(fresh)
        for number in range(400):
            fresh.message("room/1", b"%d" % number)
    assert fresh.newest < max(number for _, _, number in dict(lab.segments()))


@pytest.mark.parametrize("boot", [1, 4711], ids=["emptied", "formatted"])
def test_a_number_that_only_an_older_ring_had_vouches_for_nothing(lab: Lab, boot: int) -> None:
    boards = lab.attach(recorder(messages=700))
    lab.harvest()
    before = lab.identities()
    fresh = boards.recorders[A] = recorder(messages=700, boot=boot)
    assert fresh.newest > 2
    whole = fresh.segments[1]
    fresh.segments[1] = b"\x00" * 500  # cannot be read just now
    boards.published()
    lab.harvest()
    fresh.segments[1] = whole
    lab.harvest()
    assert lab.identities() == before | identities(fresh)


def test_one_header_is_requested_for_consecutive_boots(lab: Lab) -> None:
    one = recorder(messages=20)
    for _ in range(6):
        one.start()
    boards = lab.attach(one)
    lab.harvest()
    boards.requests.clear()
    lab.harvest()
    assert boards.requests == [(A, one.newest, 0), (A, one.newest - 1, 0)]
    assert lab.identities() == identities(one)


def test_set_time_sends_time_and_bound(lab: Lab) -> None:
    boards = lab.attach(recorder(messages=1))
    said = lab.harvest("--set-time").output
    assert len(boards.times) == 1
    seconds, bound, quality = boards.times[0].split()
    assert float(seconds) > 1.7e9 and quality == "harvester"
    assert f"{bound} ms" in said


def test_set_time_warns_if_the_message_was_slow(lab: Lab) -> None:
    boards = lab.attach(recorder(messages=1))
    took = iter([10, 20, 10])

    def there_and_back(ring: network.Ring) -> int:
        time.sleep(next(took, 60) / 1000)
        return 10

    lab.patch.setattr(network.Ring, "_there_and_back", there_and_back)
    said = lab.harvest("--set-time").output
    assert boards.times[0].split()[1:] == ["25", "harvester"]
    assert "bound of 25 ms" in said
    assert int(said.partition("may be ")[2].split()[0]) >= 60


def test_no_boards_no_broker_and_one_board_of_two(lab: Lab, tmp_path: Path) -> None:
    said = lab.harvest(status=1).output
    assert "remote_admin true" in said and "after `record_flush_interval` (10 s)" in said
    words = ["harvest", str(tmp_path / "field"), "--broker", "127.0.0.1:1"]
    done = cli(*words)
    gone = done.output
    assert done.exit_code == 1
    assert gone.count("\n") == 1 and "no MQTT at 127.0.0.1:1" in gone
    one, other = recorder(A, 20), recorder(B, 20)
    lab.attach(one, other)
    assert "no board cc" in lab.harvest("--board", "cc", status=1).output
    assert not lab.path.exists() and not (tmp_path / "field").exists()
    lab.harvest("--board", B)
    assert lab.identities() == identities(other)


def test_a_kill_between_bundle_and_line_leaves_nothing_behind(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = recorder()
    lab.attach(one)

    def killed(*_: object) -> None:
        raise KeyboardInterrupt

    with lab.patch.context() as patch:
        patch.setattr("slotmq_telemetry.harvest.manifest.Manifest.append", killed)
        lab.harvest(status=1)
    assert lab.lines() == [] and len(list((lab.path / "bundles").iterdir())) == 1
    lab.harvest()
    assert len(list((lab.path / "bundles").iterdir())) == 1
    assert lab.identities() == identities(one)
    assert list((lab.path / "partial").iterdir()) == []
