"""`python -m slotmq_dev.emulator`: an emulated board, whose flash is in a folder."""

from pathlib import Path

import pytest

from slotmq_dev.emulator import __main__ as emulated
from slotmq_tools.errors import ToolError


def test_a_second_board_in_the_same_folder_is_refused(tmp_path: Path) -> None:
    once, twice = emulated._alone(tmp_path), emulated._alone(tmp_path)
    with once, pytest.raises(ToolError, match="already"), twice:
        pass
    with emulated._alone(tmp_path):
        pass
