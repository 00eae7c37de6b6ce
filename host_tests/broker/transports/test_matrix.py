"""Each module of the wire suites is in each cell on each runtime, or has a reason."""

import re
import subprocess
import sys
from itertools import product
from pathlib import Path

from ..wire.process import RUNTIMES
from .cells import CELLS, TCP_ONLY, name_of

BROKER = Path(__file__).parents[1]
_TEST = re.compile(r"broker/(\S+?)\.py::(\S+?)\[(\w+)-([a-z]+-[a-z]+)\b")


def test_each_module_is_in_each_cell() -> None:
    folders = [str(BROKER / name) for name in ("wire", "wire5")]
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-m", "", *folders]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    cells = {str(cell) for cell in CELLS}
    found: dict[str, set[tuple[str, str]]] = {}
    for path, _, runtime, cell in _TEST.findall(done.stdout):
        if cell in cells:
            found.setdefault(path.replace("/", "."), set()).add((runtime, cell))
    modules = {
        f"{file.parent.name}.{file.stem}"
        for name in folders
        for file in Path(name).glob("test_*.py")
    }
    assert found.keys() == modules - TCP_ONLY.keys()
    for module, its in found.items():
        assert its == set(product(RUNTIMES, cells)), module


def test_what_stays_on_tcp_is_there() -> None:
    """A renamed test has no reason left."""
    for name in TCP_ONLY:
        folder, module, *test = name.split(".")
        file = BROKER / folder / f"{module}.py"
        assert file.exists(), name
        assert not test or f"def {test[-1]}(" in file.read_text(), name
    assert name_of("host_tests.broker.wire.test_will") == "wire.test_will"
