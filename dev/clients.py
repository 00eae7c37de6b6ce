"""Puts mosquitto_pub and mosquitto_sub into a folder, to try the broker out.

    python -m slotmq_dev.clients FOLDER

They are scripts that start Debian's clients from the cache, so nothing needs root.
"""

import shlex
import sys
from pathlib import Path

from slotmq_tools.errors import ToolError

from .peers import mosquitto


def main() -> int:
    """Write both scripts into the folder in the only argument; -> exit status."""
    folder = Path(sys.argv[1])
    try:
        commands = {"mosquitto_pub": mosquitto.publish(), "mosquitto_sub": mosquitto.subscribe()}
    except ToolError as error:
        print(f"slotmq: {error}", file=sys.stderr)
        return 1
    for name, command in commands.items():
        (folder / name).write_text(f'#!/bin/sh\nexec {shlex.join(command)} "$@"\n')
        (folder / name).chmod(0o755)
        print(folder / name)
    return 0


if __name__ == "__main__":
    sys.exit(main())
