"""Fetches and builds what the emulated board needs, and says where it is.

python -m slotmq_tools.emulator
"""

import sys

from ..errors import ToolError
from . import image, toolchain
from .board import command


def main() -> int:
    """Build; the exit status."""
    try:
        made = image.build()
        toolchain.slirp()
        words, _ = command(None)
    except ToolError as error:
        print(f"slotmq: {error}", file=sys.stderr)
        return 1
    print(f"image in {made.folder}, started by {words[0]}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
