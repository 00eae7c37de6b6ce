"""A broker on 32-bit MicroPython, with the heap of a board, in a process of its own.

A subscriber of its own sees the messages: it takes one of the board's connections. What is
in the broker's tables cannot be seen from here.
"""

import contextlib
import os
import shutil
import socket
import subprocess
import tempfile
import threading
from collections import deque
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from slotmq.embed.arguments_cpython import encoded
from slotmq.fast.bytes_cpython import utf8_ok

from .. import boards, codec, micropython
from ..pack import mpy
from ..ports import LOOPBACK, free_port
from ..run.launcher import BOOT
from .options import Options, WrongOptions
from .seen import Seen
from .texts import Message, NotRunning

_TIMEOUT_S = 30
_MOST_LINES = 2000
_NAME = "test-watcher"


class Process:
    """As Server, as far as that is possible."""

    broker = None

    def __init__(self, options: Options) -> None:
        self.spy = Seen()
        self.log: deque[str] = deque(maxlen=_MOST_LINES)
        self.network = SimpleNamespace(port=free_port())
        self._pid = os.getpid()
        self._process: subprocess.Popen[bytes] | None = None
        self._folder = Path(tempfile.mkdtemp(prefix="slotmq-test-"))
        try:
            self._process = self._start(options)
            self._watcher = Watcher(self.network.port, options, self.spy)
        except BaseException:
            self._end()
            shutil.rmtree(self._folder, ignore_errors=True)
            raise

    def _start(self, options: Options) -> "subprocess.Popen[bytes]":
        board = options.board or "RPI_PICO_W"
        conf = self._folder / "slotmq.conf"
        text = options.configuration(self._folder)
        if "persistence_location" not in text:  # not in the folder of whoever tests
            text += f"persistence_location {self._folder}\n"
        conf.write_text(text)
        argv: list[str | Path] = [
            "-c",
            conf,
            "-p",
            str(self.network.port),
            "--host",
            LOOPBACK,
            "--board",
            board,
        ]
        command = micropython.command(
            32, boards.load(board).heap_kb, BOOT, [*argv, "-v", "--orders"]
        )
        environment = micropython.environment(mpy.build_for(micropython.find(32)))
        ready_in, ready_out = os.pipe()
        process = subprocess.Popen(
            command,
            env={**environment, "SLOTMQ_READY_FD": str(ready_out)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            pass_fds=(ready_out,),
        )
        os.close(ready_out)
        self._reader = threading.Thread(target=self._read, args=(process.stdout,), daemon=True)
        self._reader.start()
        listens = os.read(ready_in, 1)
        os.close(ready_in)
        if not listens:
            process.wait()
            self._reader.join()
            _close(process)
            raise WrongOptions("\n".join(self.log))
        return process

    def _read(self, output: Any) -> None:
        for line in output:
            self.log.append(line.decode(errors="replace").rstrip())

    def check(self) -> None:
        """NotRunning: the process has ended, or is the parent's."""
        if self._pid != os.getpid():
            raise NotRunning("the broker belongs to the process that forked this one")
        if self._process is None or self._process.poll() is not None:
            raise NotRunning("the broker's process has ended")

    check_failure = check

    def catch_up(self) -> None:
        """Nothing: the watcher sees what it sees."""

    check_thread = catch_up

    def publish(self, topic: str, payload: str | bytes, qos: int, retain: bool) -> bool:
        self.check()
        return self._watcher.publish(topic, payload, qos, retain)

    def close(self) -> None:
        """Stop it in order. After a fork() the child leaves all to its parent."""
        if self._pid != os.getpid():
            return
        self._watcher.close()
        self._end()

    def _end(self) -> None:
        process = self._process
        if process is None or process.poll() is not None:
            return
        assert process.stdin
        with contextlib.suppress(BrokenPipeError):
            process.stdin.close()  # the end of orders
        try:
            process.wait(_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        self._reader.join()
        _close(process)
        shutil.rmtree(self._folder, ignore_errors=True)


def _close(process: "subprocess.Popen[bytes]") -> None:
    for stream in (process.stdin, process.stdout):
        if stream:
            stream.close()


class Watcher:
    """A client of level 4 that subscribes to #, and publishes for the test."""

    def __init__(self, port: int, options: Options, spy: Any) -> None:
        self._spy = spy
        self._packet_id = 1  # that of its SUBSCRIBE
        self._sock = socket.create_connection((LOOPBACK, port), _TIMEOUT_S)
        self._packets = self._read()
        login: dict[str, Any] = {}
        for name, password in list(options.users.items())[:1]:
            login = {"username": name, "password": password.encode()}
        self._sock.sendall(codec.connect(_NAME, **login))
        _, answer = next(self._packets, (0, b""))
        if answer != b"\0\0":
            raise WrongOptions(f"the watcher of the test was refused: {answer.hex()}")
        self._sock.sendall(codec.subscribe(self._packet_id, ("#", 0)))
        next(self._packets, None)
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()

    def publish(self, topic: str, payload: str | bytes, qos: int, retain: bool) -> bool:
        name, data = encoded(topic), encoded(payload)
        if not utf8_ok(name, 0, len(name), 1):
            raise ValueError("topic name: UTF-8 without wildcards, not empty")
        if qos not in (0, 1, 2):
            raise ValueError("qos: 0 to 2")
        self._packet_id = self._packet_id % 65535 + 1
        self._spy.packets.append(f"the test -> PUBLISH {topic} {data!r}")
        self._sock.sendall(codec.publish(name, data, qos, self._packet_id, retain))
        return True

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self._sock.sendall(codec.disconnect())
        with contextlib.suppress(OSError):
            self._sock.shutdown(socket.SHUT_RDWR)
        self._thread.join()
        self._sock.close()

    def _watch(self) -> None:
        with contextlib.suppress(OSError):
            for first, body in self._packets:
                if first >> 4 == codec.PUBREC:
                    self._sock.sendall(codec.ack(codec.PUBREL, codec.two(body, 0)))
                elif first >> 4 == codec.PUBLISH:
                    got = codec.decode(first, body, 4)
                    topic = got.topic.decode()
                    self._spy.packets.append(f"# <- PUBLISH {topic} {got.payload!r}")
                    self._spy.add(Message(topic, got.payload, 0, bool(got.retain)))

    def _read(self) -> Iterator[tuple[int, bytes]]:
        reader = codec.Reader()
        while data := self._sock.recv(65536):
            yield from reader.packets(data)
