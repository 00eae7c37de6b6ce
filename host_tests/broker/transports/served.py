"""`slotmq run` as a process of its own, over each transport; at its end it says which path has
served."""

from pathlib import Path

from slotmq_tools.ports import free_port

from ..tls.client import context, lines_of
from ..wire.client import Client
from ..wire.process import BrokerProcess
from .relay import Relay

PROGRAM = Path(__file__).with_name("counted_run.py")
TRANSPORTS = "plain", "tls", "ws", "wss"
SECURE = "tls", "wss"
PATHS = {"fast": "", "handlers": "log_type all\n"}  # a log of each packet leaves no fast path

# Keys with which each packet must be looked at (control.py), or with no space for answers
EACH_LOOKED_AT = (
    "allow_duplicate_messages",
    "limit tx_bytes",
    "log_type",
    "max_qos",
    "persistence",
    "upgrade_outgoing_qos",
)


class Served(BrokerProcess):
    """A broker whose packets take one path, over these transports."""

    program = (str(PROGRAM),)
    more = ""  # settings

    def __init__(
        self,
        runtime: str,
        path: str,
        certs: Path,
        folder: Path,
        text: str = "# modest\n",
        transports: tuple[str, ...] = TRANSPORTS,
    ) -> None:
        self.path = path
        self.certs = certs
        self.ports = {transport: free_port() for transport in transports}
        super().__init__(runtime, text, folder)

    def _listeners(self) -> str:
        self.address = ("127.0.0.1", self.ports[next(iter(self.ports))])
        lines = [PATHS[self.path], self.more]
        for transport, port in self.ports.items():
            lines.append(f"listener {port} 127.0.0.1")
            lines += ["protocol websockets"] if "w" in transport else []
            lines += lines_of(self.certs) if transport in SECURE else []
        return "".join(f"{line}\n" for line in lines)

    def relay(self, transport: str) -> Relay:
        """Stands for the broker over this transport."""
        trusted = context(self.certs) if transport in SECURE else None
        return Relay(self.ports[transport], trusted, is_web="w" in transport)

    def reads(self, transport: str) -> int:
        """After its end: how many reads of such connections took the fast path."""
        found = 0
        lines = [line for line in self.lines if line.startswith("fast path: ")]
        assert lines, "it did not say which path served"
        for line in lines:
            kind, stream, number = line.removeprefix("fast path: ").split()
            is_web, is_secure = kind == "framed", stream[:3] == "Tls"
            if (is_web, is_secure) == ("w" in transport, transport in SECURE):
                found += int(number)
        return found


class Over(Served):
    """A broker that is reached over one transport; its address is a relay's, which speaks that."""

    def __init__(
        self, runtime: str, cell: tuple[str, str], certs: Path, folder: Path, text: str
    ) -> None:
        self.transport, path = cell
        self._may_be_fast = not any(key in text for key in EACH_LOOKED_AT)
        self._is_probed = False
        if "connect_timeout" not in text:  # records of one byte take a busy computer long
            self.more = "connect_timeout 60\n"
        super().__init__(runtime, path, certs, folder, text, (self.transport,))
        self._relay = None if self.transport == "plain" else self.relay(self.transport)
        if self._relay:
            self.address = self._relay.address

    def stop(self) -> None:
        if self.path == "fast" and self._may_be_fast and self.alive():
            self._probe()
        super().stop()

    def _probe(self) -> None:
        # A read that the fast path takes, whatever the tests have sent. Some let nobody in.
        probe = Client(self.address)
        if probe.connect(probe.codec.connect("probe")).code == 0:
            probe.ping()
            self._is_probed = True
        probe.sock.close()

    def finish(self) -> None:
        """Also check which path has served."""
        super().finish()
        if self._relay:
            self._relay.close()
        reads = {transport: self.reads(transport) for transport in TRANSPORTS}
        mine = reads.pop(self.transport)
        assert not any(reads.values()), (self.transport, reads)
        if self.path == "handlers":
            assert mine == 0, f"the fast path served {mine} reads"
        elif self._is_probed:
            assert mine > 0, f"the fast path served nothing: {self.file.read_text()}"
