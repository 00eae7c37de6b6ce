"""Each block of Python in docs/pytest.md is a file of tests that pass."""

import re
import shutil
from pathlib import Path

import pytest

from slotmq_tools.testing.mqtt import Mqtt

PAGE = (Path(__file__).parents[3] / "docs/pytest.md").read_text()
BLOCKS = re.findall(r"^```python\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)
NAMES = [re.search(r"def (test_\w+)", block).group(1) for block in BLOCKS]  # type: ignore[union-attr]


@pytest.mark.parametrize("block", BLOCKS, ids=NAMES)
def test_the_recipe_passes(pytester: pytest.Pytester, block: str) -> None:
    pytester.makepyfile(block)
    shutil.copytree(Path(__file__).parent / "umqtt", pytester.path / "lib/umqtt")
    result = pytester.runpytest_subprocess("-p", "no:cacheprovider", "-W", "error")
    result.assert_outcomes(passed=block.count("def test_"))


def test_there_are_six_recipes() -> None:
    assert len([name for name in NAMES if "configuration" not in name]) == 6


@pytest.mark.parametrize("arguments", re.findall(r"`@pytest\.mark\.mqtt\((.+?)\)`", PAGE))
def test_the_marks_in_the_text_are_right(arguments: str) -> None:
    Mqtt(**eval(f"dict({arguments})")).close()
