"""Starts hooked_broker.py as a process of its own."""

import os
import sys
from pathlib import Path

from slotmq_tools import micropython
from slotmq_tools.pack import mpy
from slotmq_tools.ports import free_port

from . import codec
from .client import Client
from .process import Program

SCRIPT = Path(__file__).with_name("hooked_broker.py")


class HookedBroker(Program):
    """The script with these hooks on that runtime."""

    def __init__(self, runtime: str, hooks: str, folder: Path, heap_kb: int = 1024) -> None:
        self.address = ("127.0.0.1", free_port())
        words = [hooks, str(self.address[1]), str(folder)]
        command, env = [sys.executable, str(SCRIPT), *words], dict(os.environ)
        if runtime == "micropython":
            command = micropython.command(32, heap_kb, SCRIPT, words)
            env = micropython.environment(mpy.build_for(micropython.find(32)))
        super().__init__(command, folder, env)
        self.wait_for(lambda: self.lines, "the broker to listen")

    def close(self) -> None:
        """Let it stop, and check that it did so in order."""
        last = Client(self.address)
        last.connect(codec.connect("stop"))
        self.finish()
        last.sock.close()
