"""Creates the virtual environment. It runs before anything is installed.

    python3 -m tools.bootstrap .venv

`python3 -m venv` installs pip from a wheel that Debian ships in the package python3-venv. If
that package is missing, this module fetches the wheel from Debian's mirror.
"""

import subprocess
import sys
import venv
from importlib import util
from pathlib import Path

from .errors import ToolError
from .fetch import debian

OLDEST = (3, 11)


def main() -> int:
    """Create the environment that the only argument names; -> exit status."""
    if sys.version_info < OLDEST:
        print(f"slotmq needs Python {OLDEST[0]}.{OLDEST[1]} or later", file=sys.stderr)
        return 1
    try:
        make_environment(Path(sys.argv[1]))
    except ToolError as error:
        print(f"slotmq: {error}; `apt install python3-venv` helps too", file=sys.stderr)
        return 1
    return 0


def make_environment(folder: Path) -> None:
    """Create a virtual environment with pip in it. ToolError: the wheel cannot be fetched."""
    has_pip = util.find_spec("ensurepip") is not None
    venv.create(folder, with_pip=has_pip, symlinks=True)
    if not has_pip:
        _install_pip(folder / "bin/python")


def _install_pip(python: Path) -> None:
    # A wheel is a zip file, and Python can run pip from it.
    wheels = debian.unpack(["python3-pip-whl"]).root / "usr/share/python-wheels"
    wheel = next(wheels.glob("pip-*.whl"))
    pip = [str(python), str(wheel / "pip")]
    subprocess.run([*pip, "install", "-q", "--no-index", str(wheel)], check=True)


if __name__ == "__main__":
    sys.exit(main())
