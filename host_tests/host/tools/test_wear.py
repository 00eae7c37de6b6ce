"""Measures the flash wear of a message, and compares it with docs/reliability.md."""

import functools
from pathlib import Path

from slotmq_dev import figures
from slotmq_dev.wear.__main__ import Wear, markdown, measure

PAGE = Path(__file__).parents[3] / "docs/reliability.md"


@functools.cache
def found() -> dict[tuple[str, str], Wear]:
    return {(one.medium, one.traffic): one for one in measure()}


def test_qos_0_without_retain_writes_nothing() -> None:
    for medium in ("flash", "littlefs"):
        assert found()[medium, "QoS 0"][2:] == (0, 0)


def test_a_commit_programs_a_page_of_raw_flash() -> None:
    one = found()["flash", "QoS 1"]
    assert 256 <= one.programmed < 290
    assert abs(one.erased - one.programmed) < 20
    assert found()["flash", "QoS 2"].programmed < 2 * 290
    assert found()["flash", "QoS 1, 12 at once"].programmed < one.programmed * 0.6


def test_littlefs_wears_many_times_faster() -> None:
    for traffic in ("QoS 1", "QoS 2", "QoS 0, retained"):
        assert found()["littlefs", traffic].erased > 10 * found()["flash", traffic].erased


def test_the_document_has_the_measured_table() -> None:
    assert figures.get(PAGE.read_text(), "wear") == markdown(list(found().values())), (
        "python -m slotmq_dev.wear --write docs/reliability.md"
    )
