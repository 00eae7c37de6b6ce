"""Starts counting_broker.py as a process of its own, with a listener for each transport."""

import os
import subprocess
import sys
from pathlib import Path

from slotmq_tools import micropython
from slotmq_tools.pack import mpy
from slotmq_tools.ports import free_port

from ..tls.client import context, lines_of
from ..wire.process import MODEST, Program
from .relay import Relay

SCRIPT = Path(__file__).with_name("counting_broker.py")
TRANSPORTS = "plain", "tls", "ws", "wss"
SECURE = "tls", "wss"
PATHS = {"fast": "", "handlers": "log_type all\n"}  # a log of each packet leaves no fast path
_HEAP_KB = 32768


class Served(Program):
    """A broker whose packets take one path, over all transports."""

    def __init__(self, runtime: str, path: str, certs: Path, folder: Path) -> None:
        self.path = path
        self.certs = certs
        self.ports = {transport: free_port() for transport in TRANSPORTS}
        self.address = ("127.0.0.1", self.ports["plain"])
        lines = ["allow_anonymous true", PATHS[path], MODEST]
        for transport, port in self.ports.items():
            lines.append(f"listener {port} 127.0.0.1")
            lines += ["protocol websockets"] if "w" in transport else []
            lines += lines_of(certs) if transport in SECURE else []
        file = folder / "slotmq.conf"
        file.write_text("\n".join(lines) + "\n")
        words = ["-c", str(file), "--orders"]
        command, env = [sys.executable, "-u", str(SCRIPT), *words], dict(os.environ)
        if runtime == "micropython":
            command = micropython.command(32, _HEAP_KB, SCRIPT, words)
            env = micropython.environment(mpy.build_for(micropython.find(32), packed=False))
        super().__init__(command, folder, env, stdin=subprocess.PIPE)
        self.wait_for(lambda: self.lines, "the broker to listen")

    def stop(self) -> None:
        assert self.process.stdin
        with self.process.stdin as orders:
            orders.write("s")
        self.finish()

    def relay(self, transport: str) -> Relay:
        """Stands for the broker over this transport."""
        trusted = context(self.certs) if transport in SECURE else None
        return Relay(self.ports[transport], trusted, is_web="w" in transport)

    def reads(self, transport: str) -> int:
        """After its end: how many reads of such connections took the fast path."""
        found = 0
        for line in self.lines:
            if line.startswith("fast path: "):
                kind, stream, number = line.removeprefix("fast path: ").split()
                is_of = (kind == "framed") == ("w" in transport)
                found += (
                    int(number) if is_of and (stream[:3] == "Tls") == (transport in SECURE) else 0
                )
        return found
