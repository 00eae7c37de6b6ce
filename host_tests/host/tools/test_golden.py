"""The broker writes the golden segments and journals in host_tests/support/golden."""

from pathlib import Path

from click.testing import CliRunner

from slotmq_dev import golden


def test_the_broker_writes_the_golden_files(tmp_path: Path) -> None:
    def run(*args: str) -> tuple[int, list[str]]:
        done = CliRunner().invoke(golden.main, [*args, str(tmp_path)])
        return done.exit_code, done.output.split("\n")

    assert CliRunner().invoke(golden.main, ["--check"]).exit_code == 0, (
        "python -m slotmq_dev.golden"
    )
    status, new = run("--check")
    assert status == 1 and len(new) > 16 and "version-3.file: new" in new
    assert run()[0] == 0
    assert run("--check")[0] == 0
    changed, older = (tmp_path / "journal" / f"version-{n}.file" for n in (2, 0))
    for path in (changed, older):  # an older version is not written again
        path.write_bytes(b"x")
    assert run("--check") == (1, ["version-2.file: differs", ""])
    assert changed.read_bytes() == b"x"
    assert run()[0] == 0
    assert run("--check")[0] == 0


def test_every_golden_journal_is_read_by_a_test() -> None:
    test = (golden.FOLDER.parents[1] / "broker/unit/journal/test_golden.py").read_text()
    names = [path.name for path in (golden.FOLDER / "journal").iterdir()]
    assert len(names) >= 2
    assert [name for name in names if f'"{name}"' not in test] == []
