"""Fetches everything that tests and benchmarks would otherwise fetch when they need it.

    python -m slotmq_dev.fetch [nightly]

With `nightly` also what only `make nightly` needs. Prints a line for each package. If everything
is in the cache, it takes a second.
"""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from slotmq_tools import cache, micropython
from slotmq_tools.errors import ToolError

from .peers import chromium, mosquitto, node, python313, stubs, valgrind


def main() -> int:
    """Fetch and list everything; -> exit status."""
    try:
        for line in _fetch_all("nightly" in sys.argv[1:]):
            print(line, flush=True)
    except ToolError as error:
        print(f"slotmq: {error}", file=sys.stderr)
        return 1
    return 0


def _fetch_all(is_nightly: bool) -> Iterator[str]:
    yield f"cache folder {cache.root()}"
    yield str(micropython.find(32))
    yield str(micropython.find(64))
    yield _first_line([*mosquitto.broker(), "-h"])
    yield _first_line([*python313.command(), "--version"])
    runs_valgrind, valgrind_environment = valgrind.command()
    yield _first_line([*runs_valgrind, "--version"], valgrind_environment)
    for port in stubs.PACKAGES:
        yield f"stubs of the {port} port in {stubs.folder(port)}"
    yield f"npm packages in {node.packages()}"
    if is_nightly:
        yield f"Chromium: {chromium.command(Path())[3]}"


def _first_line(command: list[str], environment: dict[str, str] | None = None) -> str:
    answer = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    return answer.stdout.partition("\n")[0]


if __name__ == "__main__":
    sys.exit(main())
