"""Brokers that speak MQTT over WebSocket, on each runtime, also over TLS."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from slotmq_tools.ports import free_port

from ...support.program import Run, conf
from ..tls.client import lines_of
from ..tls.conftest import made
from ..wire.process import DEFECT, MODEST

PAGE = "<!doctype html><title>page</title>"


class Web:
    """A running broker: its ports, and its log."""

    def __init__(self, folder: Path, runtime: str, certs: Path) -> None:
        self.tcp, self.ws, self.wss, self.tls = (free_port() for _ in range(4))
        self.certs = certs
        self.www = folder / "www"
        self.www.mkdir()
        (self.www / "sub").mkdir()
        (self.www / "index.html").write_text(PAGE)
        (folder / "secret.txt").write_text("secret")
        (self.www / "link.txt").symlink_to(folder / "secret.txt")
        (self.www / "sub" / "up").symlink_to(folder)
        lines = [f"listener {self.tcp} 127.0.0.1", *self._listener(self.ws)]
        lines += [*self._listener(self.wss), *lines_of(certs)]
        lines += [f"listener {self.tls} 127.0.0.1", *lines_of(certs)]
        lines += ["allow_anonymous true"]
        self.run = Run(folder, runtime, "-c", conf(folder, *lines, *MODEST.split("\n")))
        self.run.headline()

    def _listener(self, port: int) -> list[str]:
        return [f"listener {port} 127.0.0.1", "protocol websockets", f"http_dir {self.www}"]

    def log(self, text: str) -> None:
        """Wait for a text in the log."""
        self.run.wait_for(lambda: text in self.run.everything(), text)

    def stop(self) -> None:
        self.run.stop()
        assert DEFECT not in self.run.everything()


@pytest.fixture(scope="session")
def certs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return made(tmp_path_factory.mktemp("certs"))


@pytest.fixture(scope="session")
def web(runtime: str, certs: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Web]:
    one = Web(tmp_path_factory.mktemp("web"), runtime, certs)
    yield one
    one.stop()
