"""clocks.toml: somebody knows by how much the clocks of a boot were wrong."""

from __future__ import annotations

import re
import struct
from pathlib import Path
from typing import Any

import pytest

from slotmq_tools.errors import ToolError
from slotmq_tools.telemetry import corrections
from slotmq_tools.telemetry.board_task import answers

from .test_clock import DAY, NOW

A = "286f000000000001"


def facts(*days: float) -> list[dict[str, Any]]:
    """Boots of a day that began on these days, as a phone told each."""
    found: list[dict[str, Any]] = []
    row = {"passed": 1, "stretch": 0, "harvested_ms": NOW + 900 * DAY, "uptime_before": 0}
    for boot, day in enumerate(days, 1):
        wall = struct.pack("<IHI", NOW // 1000 + int(day * DAY / 1000), 0, 50)
        own = row | {"boot": boot, "flags": 2}
        found.append(own | {"fact": "boot", "seq": 50, "uptime_ms": DAY})
        found.append(own | {"fact": "anchor", "seq": 1, "uptime_ms": 0, "payload": wall})
    return found


def told(*days: float, **corrected: int) -> tuple[list[str], list[tuple[str, bool, float]]]:
    """The clock of each boot; and of each anchor its kind, whether it is believed, its day."""
    by = {int(boot.removeprefix("boot")): ms for boot, ms in corrected.items()}
    rows = answers(facts(*days), by)
    clocks = [row["clock"] for row in rows if row["answer"] == "piece" and row["passed"]]
    anchors = [row for row in rows if row["answer"] == "anchor"]
    days_told = [(row["anchor"] / 1000 - NOW) / DAY for row in anchors]
    return clocks, [
        (row["quality"], row["believed"], round(day, 2))
        for row, day in zip(anchors, days_told, strict=True)
    ]


def test_what_is_corrected_is_believed_and_settles_what_was_suspect() -> None:
    assert told(0, 2, -40)[0] == ["suspect", "suspect", "suspect"]
    clocks, anchors = told(0, 2, -40, boot3=44 * DAY)
    assert clocks == ["anchored"] * 3
    assert anchors == [("message", True, 0), ("message", True, 2), ("corrected", True, 4)]


def test_the_file_has_seconds_for_each_boot_of_a_board(tmp_path: Path) -> None:
    assert corrections.read(tmp_path) == {}
    (tmp_path / corrections.FILE).write_text(f"[{A}]\n7 = 3600\n8 = -0.5\n")
    assert corrections.read(tmp_path) == {A: {7: 3_600_000, 8: -500}}


WRONG = [
    ("[x]", "[x]: a board's id has 16 hex digits"),
    (f"[{A}]\nseven = 1", "the number of a boot, and seconds"),
    (f"[{A}]\n7 = true", "the number of a boot, and seconds"),
    (f"[{A}]\n7 = nan", "the number of a boot, and seconds"),
    ("[", "clocks.toml cannot be read"),
]


@pytest.mark.parametrize(("text", "complaint"), WRONG, ids=[text for text, _ in WRONG])
def test_a_wrong_file_is_one_line(tmp_path: Path, text: str, complaint: str) -> None:
    (tmp_path / corrections.FILE).write_text(text)
    with pytest.raises(ToolError, match=re.escape(complaint)) as failed:
        corrections.read(tmp_path)
    assert len(str(failed.value).splitlines()) == 1
