"""TLS of a test's broker: a throw-away certificate for each process, and connections over it."""

import atexit
import os
import shutil
import socket
import ssl
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

from slotmq.net.tls import TlsStream
from slotmq.platform import poller
from slotmq.platform.sockets_cpython import Stream

from .network import HOST, Line, Network
from .options import WrongOptions

_DAYS = 1


class TlsLine(Line, TlsStream):
    """A connection over TLS."""

    def __init__(
        self, loop: Any, sock: socket.socket, context: ssl.SSLContext, network: Network
    ) -> None:
        super().__init__(loop, Stream(sock), context)  # type: ignore[no-untyped-call]
        self.begin(network, sock)


def opener(loop: Any, context: ssl.SSLContext) -> Callable[[socket.socket, Network], Line]:
    """What makes a connection of a socket that was accepted; as accept() of net/tls.py."""
    poller.of(loop)
    return lambda sock, network: TlsLine(loop, sock, context, network)


@cache
def authority() -> Path:
    """The folder with ca.crt, and a server's certificate for localhost and 127.0.0.1; until the
    process ends. WrongOptions: a package is missing."""
    try:
        from ..certs import Authority
    except ImportError as error:
        text = f"tls: {error.name} is missing; the extra `certs` of slotmq brings it"
        raise WrongOptions(text) from None
    folder = Path(tempfile.mkdtemp(prefix="slotmq-test-"))
    atexit.register(_remove, folder, os.getpid())
    Authority(folder).issue("server", "localhost", ("localhost", HOST, "::1"), _DAYS)
    return folder


def _remove(folder: Path, pid: int) -> None:
    if pid == os.getpid():  # a child after fork() leaves it to its parent
        shutil.rmtree(folder, ignore_errors=True)


@cache
def context() -> ssl.SSLContext:
    """What the broker serves with that certificate."""
    made = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    made.load_cert_chain(authority() / "server.crt", authority() / "server.key")
    return made
