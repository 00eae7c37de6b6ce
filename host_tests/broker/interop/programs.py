"""Runs mosquitto_pub, mosquitto_sub and node, each with a timeout."""

import contextlib
import subprocess
from collections.abc import Iterator
from pathlib import Path

from slotmq_dev.peers import mosquitto, node

TIMEOUT_S = 10.0
Answer = subprocess.CompletedProcess[bytes]


def _where(address: tuple[str, int]) -> list[str]:
    return ["-h", address[0], "-p", str(address[1])]


def pub(address: tuple[str, int], *options: str, given: bytes = b"") -> Answer:
    """mosquitto_pub with these options and this standard input."""
    return _run([*mosquitto.publish(), *_where(address), *options], given)


def sub(address: tuple[str, int], *options: str) -> Answer:
    """mosquitto_sub with these options, until it ends by itself."""
    return _run([*mosquitto.subscribe(), *_where(address), *options])


def succeed(answer: Answer) -> bytes:
    """-> what it printed"""
    assert answer.returncode == 0, answer.stderr.decode()
    return answer.stdout


class Subscriber:
    """A mosquitto_sub that runs."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self.process = process

    def finish(self) -> bytes:
        """Wait for its end. -> what it has printed since it was ready"""
        printed, _ = self.process.communicate(timeout=TIMEOUT_S)
        assert self.process.returncode == 0
        return printed


@contextlib.contextmanager
def subscriber(address: tuple[str, int], base: str, *options: str) -> Iterator[Subscriber]:
    """A running mosquitto_sub that has subscribed to all filters in its options.

    It has done so when it prints the retained message of one more filter, the last in the same
    SUBSCRIBE. `-C` must count that message, too.
    """
    ready = f"ready/{base}"
    succeed(pub(address, "-q", "1", "-r", "-t", ready, "-m", ready))
    command = [*mosquitto.subscribe(), *_where(address), *options, "-W", "10", "-t", ready]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        try:
            assert process.stdout
            first = process.stdout.readline()
            assert ready.encode() in first, first
            yield Subscriber(process)
        finally:
            process.kill()
    succeed(pub(address, "-q", "1", "-r", "-t", ready, "-n"))


def script(path: Path, *arguments: str) -> Answer:
    """Run a script by node, with the packages of npm."""
    command, environment = node.command(path)
    return subprocess.run(
        [*command, *arguments],
        env=environment,
        capture_output=True,
        timeout=TIMEOUT_S,
        check=False,
    )


def _run(command: list[str], given: bytes = b"") -> Answer:
    return subprocess.run(
        command, input=given, capture_output=True, timeout=TIMEOUT_S, check=False
    )
