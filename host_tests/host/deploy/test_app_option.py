"""`slotmq deploy --app`: an application that runs beside the broker."""

from pathlib import Path

import pytest

from host_tests.host.deploy.fake_repl import FakeRepl, deployed
from slotmq_tools.errors import ToolError

pytestmark = pytest.mark.usefixtures("one_module")
EXAMPLES = Path(__file__).parents[3] / "examples"


@pytest.mark.usefixtures("tested")
def test_it_is_copied_unchanged_and_replaced_by_the_next() -> None:
    board = FakeRepl()
    for name in ("app_asyncio.py", "app.py"):
        deployed(board, app=EXAMPLES / name)
        assert board.files["/app.py"] == (EXAMPLES / name).read_bytes()


@pytest.mark.usefixtures("tested")
def test_a_deploy_without_app_keeps_it_and_reports_that() -> None:
    board = FakeRepl()
    deployed(board, app=EXAMPLES / "app.py")
    lines = deployed(board)
    assert board.files["/app.py"] == (EXAMPLES / "app.py").read_bytes()
    assert any(line.startswith("kept") and "app.py" in line for line in lines)
    lines = deployed(board, app=EXAMPLES / "app.py")
    assert not any("app.py" in line for line in lines)


@pytest.mark.parametrize("erase", [False, True])
@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("def start(broker:\n", "bad1.py.*SyntaxError"),
        ("def begin(broker):\n    pass\n", r"bad1.py.*start\(broker\)"),
        (None, "No such file.*bad1.py"),
    ],
)
def test_one_that_cannot_run_changes_nothing(
    text: str | None, complaint: str, erase: bool, tmp_path: Path
) -> None:
    file = tmp_path / "bad1.py"
    if text is not None:
        file.write_text(text)
    board = FakeRepl()
    board.files = {"/slotmq.db": b"a journal"}
    with pytest.raises((ToolError, OSError), match=complaint) as caught:
        deployed(board, erase, app=file)
    assert "app.py" not in str(caught.value), "it is said of the file that was given"
    assert board.files == {"/slotmq.db": b"a journal"}
    assert board.resets == 1
