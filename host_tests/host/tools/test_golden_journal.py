"""The broker writes the golden journals of this version in support/golden/journal."""

from pathlib import Path

from click.testing import CliRunner

from slotmq_dev import golden_journal
from slotmq_dev.golden_journal import FOLDER


def test_the_broker_writes_the_golden_journals() -> None:
    made = golden_journal.make()
    assert len(made) == 4
    there = {name: (FOLDER / name).read_bytes() for name in made}
    assert made == there, "python -m slotmq_dev.golden_journal"


def test_every_golden_journal_is_read_by_a_test() -> None:
    test = (FOLDER.parents[2] / "broker/unit/journal/test_golden.py").read_text()
    names = [path.name for path in FOLDER.iterdir()]
    assert len(names) >= 2
    assert [name for name in names if f'"{name}"' not in test] == []


def test_check_lists_differences_and_writes_nothing(tmp_path: Path) -> None:
    def run(*args: str) -> tuple[int, str]:
        done = CliRunner().invoke(golden_journal.main, [*args, str(tmp_path)])
        return done.exit_code, done.output

    assert run("--check") == (1, "".join(f"{name}: new\n" for name in golden_journal.make()))
    assert run()[0] == 0
    assert run("--check") == (0, "")
    (tmp_path / "version-2.file").write_bytes(b"x")
    (tmp_path / "version-0.file").write_bytes(b"x")  # of an older version, which is not written
    assert run("--check") == (1, "version-2.file: differs\n")
    assert (tmp_path / "version-2.file").read_bytes() == b"x"
    assert run()[0] == 0
    assert run("--check") == (0, "")
