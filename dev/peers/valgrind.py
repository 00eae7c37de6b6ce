"""valgrind, which counts instructions: the machine's own, or Debian's."""

import os
import shutil

from slotmq_tools.fetch import debian


def command() -> tuple[list[str], dict[str, str]]:
    """The command line without options, and its environment."""
    if installed := shutil.which("valgrind"):
        return [installed], dict(os.environ)
    unpacked = debian.unpack(["valgrind"])
    tools = unpacked.root / "usr/libexec/valgrind"
    return unpacked.command("usr/bin/valgrind.bin"), {**os.environ, "VALGRIND_LIB": str(tools)}
