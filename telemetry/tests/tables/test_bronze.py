"""The manifest of a harvest folder, its division into tasks, and bronze: each line is read once,
from any number of harvest folders."""

from __future__ import annotations

import errno
import hashlib
import io
import shutil
from contextlib import suppress
from pathlib import Path

import pyarrow.compute as pc
import pytest

from slotmq_telemetry import bronze, live, manifest, optimize
from slotmq_telemetry.folder import Folder
from slotmq_telemetry.harvest.manifest import Line, locked
from slotmq_telemetry.lake import Lake
from slotmq_telemetry.schemas import BRONZE, GOLD, QUARANTINE, SILVER
from slotmq_telemetry.season import greenhouse, writer
from slotmq_tools.errors import ToolError
from telemetry.tests.conftest import cli, lines_of

from . import campaign
from .rows import HERE, Made, killed


def line(number: int = 1, size: int = 2048, harvested: float = 17.5) -> Line:
    return Line(f"bundles/{number}.smq", size, "", 512, harvested, "a test")


def harvest(folder: Path, *lines: Line) -> Path:
    with locked(folder) as there:
        there.append(*lines)
    return folder


def test_tasks_are_whole_segments_and_of_one_size(tmp_path: Path) -> None:
    harvest(tmp_path, line(size=5120), line(), line())
    tasks = list(manifest.parts(lines_of(tmp_path), 2100))
    spans = [[(p.line, p.start, p.end) for p in task] for task in tasks]
    assert spans == [
        [(0, 0, 2048)], [(0, 2048, 4096)], [(0, 4096, 5120)], [(1, 0, 2048)], [(2, 0, 2048)],
    ]  # fmt: skip


class Worn(io.FileIO):
    """A file that can be read up to its second segment."""

    def read(self, size: int | None = -1) -> bytes:
        if self.tell() >= 512:
            raise OSError(errno.EIO, "Input/output error")
        return super().read(size)


@pytest.mark.parametrize("killed_at", [0, 1, 9])
def test_a_bundle_that_cannot_be_read_is_read_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, killed_at: int
) -> None:
    """Whichever it is, also if a run is killed; tables of other bundles are made meanwhile."""
    monkeypatch.setattr(bronze, "_LEAST", 512)  # a bundle is read by several tasks
    lived = campaign.run(tmp_path / "harvest", [229])
    whole, made = (Made(lived, Lake(tmp_path / name).made()) for name in ("whole", "tables"))
    whole.ingest()
    large = max(lines_of(lived.folder), key=lambda bundle: bundle.size).path
    words = ["telemetry", "ingest", str(lived.folder), str(made.lake.folder)]
    with monkeypatch.context() as patch:
        opened = Folder.open
        patch.setattr(Folder, "open", lambda folder, name: (
            Worn(folder / name) if name == large else opened(folder, name)))  # fmt: skip
        run_killed(made, monkeypatch, killed_at)
        for _ in range(2):
            done = cli(*words)
            *_, path, error = done.output.splitlines()
            assert done.exit_code == 1 and error.startswith("Error: 1 of the bundles cannot be")
            assert path == f"{lived.folder}/{large}: Input/output error"
        optimize.compact(HERE, made.lake)
        reasons = made.lake.rows(QUARANTINE)["reason"].to_pylist()
        assert "not read yet: Input/output error" in reasons
        assert 0 < made.lake.rows(BRONZE).num_rows < whole.lake.rows(BRONZE).num_rows
    run_killed(made, monkeypatch, killed_at)
    assert cli(*words).exit_code == 0
    assert made.sorted() == whole.sorted()


def test_a_disk_that_is_away_is_an_error(tmp_path: Path) -> None:
    lake, folder = Lake(tmp_path / "tables").made(), harvest(tmp_path / "field", *some(25))
    with pytest.raises(
        ToolError, match=r"no new bundle can be read \(bundles/0.smq: No such file"
    ):
        ingest(folder, lake)
    assert lake.open(BRONZE) is None
    said = live.step(HERE, harvest(tmp_path / "other", *some(3)), lake)
    assert said.endswith("; not read yet: bundles/0.smq: No such file or directory")


def run_killed(made: Made, monkeypatch: pytest.MonkeyPatch, after: int) -> None:
    with monkeypatch.context() as patch, suppress(KeyboardInterrupt):
        patch.setattr(Lake, "commit", killed(after))
        made.ingest()


DAMAGE = [("bad header CRC", 9), ("bad CRC", 300)]


@pytest.mark.parametrize(("reason", "hurt"), DAMAGE, ids=[reason for reason, _ in DAMAGE])
def test_damage_at_the_end_of_a_board_is_a_loss_that_the_report_names(
    tmp_path: Path, reason: str, hurt: int
) -> None:
    """The manifest knows whose a segment is, and its numbers; a part was harvested before."""
    folder = greenhouse.grow(tmp_path / "harvest").folder
    with locked(folder) as lines:
        (line,) = lines.filled(lines.lines()[-1:])
    gone = line.segments[-1]
    data = bytearray((folder / line.path).read_bytes())
    data[len(data) - line.segment_size + hurt] ^= 4
    (folder / line.path).write_bytes(data)
    lake = Lake(tmp_path / "tables")
    assert Made(campaign.Campaign(folder), lake).ingest() == (3, 3)
    of_board = pc.field("board") == gone.board
    (bad,) = lake.rows(QUARANTINE).filter(of_board).to_pylist()
    loss = max(
        lake.rows(SILVER["losses"]).filter(of_board).to_pylist(), key=lambda r: r["first_seq"]
    )
    assert (bad["reason"], bad["boot"], bad["segment"]) == (reason, gone.boot, gone.number)
    assert loss["reasons"] == ["quarantined"] and loss["first_seq"] >= bad["first_seq"]
    assert (loss["last_seq"], bad["last_seq"]) == (gone.last, gone.last)
    assert loss["lost"] == gone.last - loss["first_seq"] + 1
    page = tmp_path / "page.html"
    assert cli("telemetry", "report", lake.folder, page).exit_code == 0
    text = page.read_text("utf-8")
    assert f"{gone.board}: {bad['bytes']:,} bytes cannot be read ({reason})." in text
    assert f"<td>{reason}</td><td>1</td><td>{bad['bytes']:,}</td>" in text


def test_a_bundle_that_is_not_copied_as_a_whole_is_lacking_and_not_lost(tmp_path: Path) -> None:
    """Its board and numbers are known; it comes in by itself once it is whole."""
    folder, tables, page = (tmp_path / name for name in ("harvest", "tables", "page.html"))
    lived = campaign.Campaign(greenhouse.grow(folder).folder)
    Made(lived, whole := Lake(tmp_path / "whole")).ingest()
    with locked(folder) as lines:
        (line,) = lines.filled(lines.lines(23, 24))
    bundle, board = folder / line.path, line.segments[-1].board
    data = bundle.read_bytes()
    zeros = (data[:end].ljust(len(data), b"\0") for end in (4096, len(data) - 4000))
    for half in (data[:5000], b"", *zeros, None):
        bundle.unlink() if half is None else bundle.write_bytes(half)
        done = cli("telemetry", "ingest", folder, tables)
        assert done.exit_code == 1 and f"{folder}/{line.path}: " in done.output
    lake = Lake(tables)
    unread = lake.rows(QUARANTINE).filter(pc.starts_with(pc.field("reason"), "not read yet"))
    there = zip(*(unread[n].to_pylist() for n in ("board", "first_seq", "last_seq")), strict=True)
    assert {*there} == {(each.board, each.first, each.last) for each in line.segments}
    for made, others in ((lake, ["not read yet"]), (whole, [])):
        for row in made.rows(GOLD["boards"]).to_pylist():
            told = set(row["reasons"]) - {"overwritten"}
            assert (row["lost"] > 0) == ("overwritten" in row["reasons"])
            assert [*told] == (others if row["board"] == board else [])
    words = ["telemetry", "report", str(tables), str(page), "--board", board]
    assert cli(*words).exit_code == 0
    text = page.read_text("utf-8")
    assert f"{board} lacks " in text and f"{board} lost" not in text
    assert f"{board}: {len(data):,} bytes cannot be read (not read yet: it ends at" in text
    bundle.write_bytes(data)
    Made(lived, lake).ingest()
    assert Made(lived, lake).sorted() == Made(lived, whole).sorted()


@pytest.mark.parametrize("is_whole", [True, False])
def test_zeros_that_a_board_left_are_read_as_they_were_harvested(
    tmp_path: Path, is_whole: bool
) -> None:
    record = writer.record(3, 1, 0, 9, writer.NO_ID, writer.NO_ID, b"\x01")
    data = (writer.header(bytes(8), 1, 1, 0, 512) + record).ljust(512, b"\0")
    about = line(size=len(data))
    about.sha256 = hashlib.sha256(data if is_whole else b"").hexdigest()
    folder, lake = harvest(tmp_path / "field", about), Lake(tmp_path / "tables").made()
    (folder / "bundles").mkdir()
    (folder / about.path).write_bytes(data)
    ingest(folder, lake)
    assert rows(lake) == [is_whole, 1]
    (bad,) = lake.rows(QUARANTINE)["reason"].to_pylist()
    assert bad.startswith("bad length" if is_whole else "not read yet: zeros where")


def ingest(harvest: Path, lake: Lake) -> tuple[int, int]:
    """The lines that were read."""
    taken = bronze.ingest(HERE, harvest, lake)
    return taken.first, taken.last


def rows(lake: Lake) -> list[int]:
    return [lake.rows(table).num_rows for table in (BRONZE, QUARANTINE)]


def test_several_harvest_folders_fill_the_same_tables(tmp_path: Path) -> None:
    lake = Lake(tmp_path / "tables").made()
    counts = []
    for seed in (214, 229):
        lived = campaign.run(tmp_path / f"{seed}", [seed])
        assert ingest(lived.folder, lake) == (0, lived.lines)
        assert ingest(lived.folder, lake) == (lived.lines, lived.lines)
        counts.append(len(lived.seasons[0].harvest.taken))
    assert rows(lake)[0] == sum(counts)


def test_a_folder_that_was_moved_compacted_and_filled_is_the_same(tmp_path: Path) -> None:
    lake = Lake(tmp_path / "tables").made()
    lived = campaign.run(tmp_path / "one", [214])
    before = lived.lines
    assert ingest(lived.folder, lake) == (0, before)
    lived.compact()
    assert lived.lines == before + 1
    moved = lived.folder.rename(tmp_path / "moved")
    assert ingest(moved, lake) == (before, before + 1)
    assert ingest(moved, lake) == (before + 1, before + 1)


def test_a_copy_of_a_folder_that_went_another_way_is_refused(tmp_path: Path) -> None:
    lake = Lake(tmp_path / "tables").made()
    one = harvest(tmp_path / "one", *some(1))
    ingest(one, lake)
    other = shutil.copytree(one, tmp_path / "other")
    harvest(one, *some(3)[1:])
    assert ingest(one, lake) == (1, 3)
    for count, complaint in ((0, "is an older copy"), (3, "begins like a harvest folder")):
        harvest(other, *some(count, of=99))
        with pytest.raises(ToolError, match=complaint):
            ingest(other, lake)
    assert rows(lake) == [0, 12]  # segments of bundles that are missing


def some(count: int, of: int = 17) -> list[Line]:
    return [line(number, harvested=of + number) for number in range(count)]
