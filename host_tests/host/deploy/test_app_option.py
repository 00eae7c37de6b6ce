"""`slotmq deploy --app`: an application of the user's own goes beside the broker."""

import hashlib
from pathlib import Path

import pytest
from click.testing import CliRunner

from host_tests.host.deploy.fake_repl import HEADLINE, FakeRepl, deployed
from slotmq_tools.deploy import board_files, commands
from slotmq_tools.errors import ToolError

SAID = [HEADLINE, "wifi home: up, 192.168.1.7"]
EXAMPLES = Path(__file__).parents[3] / "examples"


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(board_files, "code", lambda *_: {"/main.py": b"new"})
    monkeypatch.setattr(board_files, "mains", lambda: (hashlib.sha256(b"new").hexdigest(),))


@pytest.mark.usefixtures("tried")
def test_it_lies_beside_main_py_as_it_was_written() -> None:
    board = FakeRepl(SAID)
    deployed(board, app=EXAMPLES / "app_asyncio.py")
    assert board.files["/app.py"] == (EXAMPLES / "app_asyncio.py").read_bytes()
    deployed(board, app=EXAMPLES / "app.py")
    assert board.files["/app.py"] == (EXAMPLES / "app.py").read_bytes()


@pytest.mark.usefixtures("tried")
def test_a_deploy_without_one_leaves_what_is_there() -> None:
    board = FakeRepl(SAID)
    deployed(board, app=EXAMPLES / "app.py")
    said = deployed(board)
    assert board.files["/app.py"] == (EXAMPLES / "app.py").read_bytes()
    assert any(line.startswith("kept") and "app.py" in line for line in said)
    said = deployed(board, app=EXAMPLES / "app.py")
    assert not any("app.py" in line for line in said)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("def start(broker:\n", "app.py.*SyntaxError"),
        ("def begin(broker):\n    pass\n", r"has no start\(broker\)"),
        (None, "No such file"),
    ],
)
def test_one_that_no_board_could_run_changes_nothing(
    text: str | None, said: str, tmp_path: Path
) -> None:
    file = tmp_path / "app.py"
    if text is not None:
        file.write_text(text)
    board = FakeRepl(SAID)
    with pytest.raises(ToolError, match=said):
        deployed(board, app=file)
    assert board.written == [] and board.resets == 1


def test_the_command_has_the_option() -> None:
    assert "--app FILE" in CliRunner().invoke(commands.deploy, ["--help"]).output
