"""A folder of `slotmq certs`, and brokers that serve TLS with it."""

import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from slotmq_tools.cli import main

from .client import Served, lines_of


def made(folder: Path, *options: str) -> Path:
    """What `slotmq certs` makes there."""
    result = CliRunner().invoke(main, ["certs", str(folder), *options])
    assert result.exit_code == 0, result.output
    return folder


def of_rsa(folder: Path) -> None:
    """A certificate of a server that signs itself, with an RSA key."""
    name = "-x509 -newkey rsa:2048 -nodes -subj /CN=localhost -days 1"
    files = "-keyout", str(folder / "server.key"), "-out", str(folder / "server.crt")
    subprocess.run(["openssl", "req", *name.split(), *files], check=True, capture_output=True)


@pytest.fixture(scope="session")
def certs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A CA, its server, and the clients alice and bob."""
    return made(tmp_path_factory.mktemp("certs"), "--client", "alice", "--client", "bob")


@pytest.fixture(scope="session")
def foreign(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same of another CA."""
    return made(tmp_path_factory.mktemp("foreign"), "--client", "alice")


@pytest.fixture(scope="session")
def served(
    runtime: str, certs: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Served]:
    """One for all tests that need no other; its reads are shorter than a record."""
    more = "limit rx_bytes 1024", "limit tx_bytes 4096"
    one = Served(tmp_path_factory.mktemp("tls") / "served", runtime, lines_of(certs), more)
    yield one
    one.stop()


@pytest.fixture
def serve(runtime: str, certs: Path, tmp_path: Path) -> Iterator[Callable[..., Served]]:
    """Start a broker whose listener has a certificate, and these lines."""
    yield from _starting(runtime, certs, tmp_path)


@pytest.fixture
def serve_on_cpython(certs: Path, tmp_path: Path) -> Iterator[Callable[..., Served]]:
    """The same, for what MicroPython does not have."""
    yield from _starting("cpython", certs, tmp_path)


def _starting(runtime: str, certs: Path, to: Path) -> Iterator[Callable[..., Served]]:
    running: list[Served] = []

    def start(*more: str, folder: Path = certs) -> Served:
        running.append(Served(to / str(len(running)), runtime, lines_of(folder), more))
        return running[-1]

    yield start
    for each in running:
        each.stop()
