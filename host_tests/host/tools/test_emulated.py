"""An emulated board to try it on, in a folder."""

from pathlib import Path

import pytest

from slotmq_tools.emulator import __main__ as emulated
from slotmq_tools.errors import ToolError


def test_a_second_one_in_its_folder_is_refused(tmp_path: Path) -> None:
    once, twice = emulated._alone(tmp_path), emulated._alone(tmp_path)
    with once, pytest.raises(ToolError, match="already"), twice:
        pass
    with emulated._alone(tmp_path):
        pass
