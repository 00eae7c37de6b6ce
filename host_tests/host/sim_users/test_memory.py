"""The RAM, which is the sum of `slotmq budget`, and the wear of the journal's flash."""

import pytest
from click.testing import CliRunner

from slotmq.app import start
from slotmq_boards.RPI_PICO_W.limits import LIMITS
from slotmq_tools import boards
from slotmq_tools.cli import main
from slotmq_tools.scenario import report
from slotmq_tools.scenario.outcome import OF_VERSION_5

from .conftest import Simulated
from .test_outcomes import TEN


def test_the_ram_equals_the_budget(simulated: Simulated) -> None:
    outcome = simulated(TEN, board="RPI_PICO_W")
    printed = CliRunner().invoke(main, ["budget", "--board", "RPI_PICO_W"]).output
    rows = {line[:16].strip(): int(line[16:24]) for line in printed.splitlines()[1:]}
    total = rows["tables"]
    assert outcome.ram_bytes == total
    available = boards.load("RPI_PICO_W").tables_bytes
    assert f"{total:,} bytes of the {available['']:,}" in report.text(outcome)
    kept = simulated(TEN + "[persistence]\nsize = '1 MB'", board="RPI_PICO_W")
    assert kept.ram_bytes == total + rows["journal"]
    assert kept.available == available["kept"]
    more = simulated(TEN + "[limits]\nmessages = 65", board="RPI_PICO_W")
    assert more.ram_bytes == LIMITS.replaced({"messages": 65}).ram_bytes() > total


def test_without_version_5_its_rows_are_not_counted(simulated: Simulated) -> None:
    assert OF_VERSION_5 == start._OF_VERSION_5
    outcome = simulated(TEN + "[settings]\nmqtt_versions = 3", board="RPI_PICO_W")
    rows = {row[0]: row[1] for row in LIMITS.rows()}
    assert outcome.ram_bytes == sum(rows.values()) - sum(rows[name] for name in OF_VERSION_5)


def test_limits_that_do_not_fit_the_board(simulated: Simulated) -> None:
    outcome = simulated(TEN + "[limits]\nmessage_bytes = 65536", board="RPI_PICO_W")
    assert not outcome.fits and not outcome.as_json()["ram"]["fits"]
    assert "WOULD NOT" in report.summary(outcome)
    version_3 = "[settings]\nmqtt_versions = 3"
    outcome = simulated(TEN + version_3, board="RPI_PICO_W")
    assert outcome.available == boards.load("RPI_PICO_W").tables_bytes["3"]


def test_a_computer_has_no_limit(simulated: Simulated) -> None:
    outcome = simulated(TEN + "[limits]\nmessage_bytes = 4000000", board="HOST")
    assert outcome.fits and "WOULD NOT" not in report.text(outcome)


def test_qos_0_writes_nothing(simulated: Simulated) -> None:
    flash = '[persistence]\nsize = "4 MB"'
    outcome = simulated(TEN.replace("qos = 1", "qos = 0") + flash, board="RPI_PICO_W")
    assert outcome.wear and (outcome.wear.commits, outcome.wear.programmed) == (0, 0)
    assert outcome.wear.years is None


def test_writes_of_a_start_do_not_count(simulated: Simulated) -> None:
    """A persistent session is a commit; before the measured time it does not count as wear."""
    kept = '[[clients]]\nname = "kept"\nclean = false\n'
    flash = '[persistence]\nsize = "1 MB"\n'
    wear = simulated('duration = "60 s"\n' + flash + kept, board="RPI_PICO_W").wear
    assert wear and wear.commits == 0
    later = kept + 'start = "20 s"'
    wear = simulated('duration = "60 s"\n' + flash + later, board="RPI_PICO_W").wear
    assert wear and wear.commits == 1


def test_a_commit_programs_a_page(simulated: Simulated) -> None:
    """A retained message a second: a commit each, a page of 256 bytes each."""
    text = """
duration = "100 s"
[persistence]
medium = "flash"
size = "1 MB"
[[clients]]
name = "sensor"
publish = [{ topic = "t", every = "1 s", qos = 1, retain = true }]
"""
    wear = simulated(text, board="RPI_PICO_W").wear
    assert wear
    assert (wear.commits, wear.programmed) == (100, 100 * 256 + 256 * (wear.erased // 4096))
    years = (1 << 20) * 100_000 / max(wear.programmed, wear.erased) * 100 / (365.25 * 86400)
    assert wear.years == pytest.approx(years)
    lazy = text.replace(
        "[[clients]]", 'sync = "interval"\n[settings]\nautosave_interval = 20\n[[clients]]'
    )
    wear = simulated(lazy, board="RPI_PICO_W").wear
    assert wear and wear.commits == 5
    file = simulated(text + "", board="RPI_PICO_W", persistence={"medium": "littlefs"}).wear
    assert file and (file.commits, file.erased) == (100, 449_800)
    # 212 blocks of a Pico W's file system, as the table of docs/reliability.md; a region has 64
    assert file.years == pytest.approx(212 * 4096 * 1e5 / 449_800 * 100 / (365.25 * 86400))
    assert file.raw_years == pytest.approx(years / 4, rel=0.2)
