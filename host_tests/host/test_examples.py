"""The programs in examples/ on both runtimes, with network clients."""

import os
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from host_tests.support.embedded import TIMEOUT_S, Program
from slotmq_dev.peers import mosquitto
from slotmq_tools import micropython, passwd
from slotmq_tools.certs import Authority
from slotmq_tools.deploy import mqtt_client
from slotmq_tools.errors import ToolError
from slotmq_tools.pack import mpy
from slotmq_tools.ports import free_port

EXAMPLES = Path(__file__).parents[2] / "examples"
HEAP_KB = 256


class Example(Program):
    """One of the examples."""

    def __init__(self, runtime: str, folder: Path, port: int, code: str) -> None:
        script = folder / "run.py"
        script.write_text(f"import sys\nsys.path.append({str(EXAMPLES)!r})\n{code}\n")
        if runtime == "cpython":
            command, environment = [sys.executable, str(script)], dict(os.environ)
        else:
            target = micropython.find(32)
            command = micropython.command(32, HEAP_KB, script)
            environment = micropython.environment(mpy.build_for(target))
        super().__init__(folder, port, command, environment)


Start = Callable[[str], Example]


@pytest.fixture
def start(runtime: str, tmp_path: Path) -> Iterator[Start]:
    running: list[Example] = []

    def start_one(code: str) -> Example:
        port = free_port()
        running.append(Example(runtime, tmp_path, port, code.replace("PORT", str(port))))
        return running[-1]

    yield start_one
    for one in running:
        one.end()


def as_script(name: str, folder: Path) -> Program:
    """Start it as `python NAME.py`, on a free port of loopback."""
    port = free_port()
    for file in EXAMPLES.glob("*.py"):
        text = file.read_text().replace("1883", str(port)).replace("0.0.0.0", "127.0.0.1")
        (folder / file.name).write_text(text)
    command = [sys.executable, str(folder / f"{name}.py")]
    return Program(folder, port, command, dict(os.environ))


NAMES = [file.stem for file in sorted(EXAMPLES.glob("*.py")) if file.name != "computer.py"]


@pytest.mark.parametrize("name", NAMES)
def test_an_example_runs_as_a_script_until_ctrl_c(name: str, tmp_path: Path) -> None:
    example = as_script(name, tmp_path)
    try:
        example.connect("anyone").sock.close()
        example.process.send_signal(signal.SIGINT)
        assert example.process.wait(TIMEOUT_S) == 0, example.said()
        assert example.said().startswith(f"{name}: port {example.port}"), example.said()
        assert "Traceback" not in example.said()
    finally:
        example.end()


def test_sensor_logger(start: Start) -> None:
    example = start("import sensor_logger\nsensor_logger.main(PORT, every_ms=100)")
    client = example.connect("reader")
    client.subscribe("sensors/#", qos=1)
    client.receive("sensors/here", b"21.5", 1, retain=True)
    client.publish("sensors/there", b"19.0", 1)
    log = example.folder / "readings.csv"
    deadline = time.monotonic() + TIMEOUT_S
    while not log.exists() or "sensors/there,19.0\n" not in log.read_text():
        assert time.monotonic() < deadline, example.said()
        time.sleep(0.05)
    assert "sensors/here,21.5\n" in log.read_text()
    client.sock.close()


def test_the_sensor_logger_continues_when_ticks_ms_wraps_around(start: Start) -> None:
    """It wraps around after 2 ** 30 ms, twelve days; here in the sixth of twenty turns."""
    example = start(
        "import sensor_logger\n"
        "now, read = [2**30 - 600], []\n"
        "def ticks_ms():\n"
        "    now[0] = (now[0] + 100) % 2**30\n"
        "    return now[0]\n"
        "sensor_logger.ticks_ms = ticks_ms\n"
        "sensor_logger.main(PORT, read=lambda: read.append(now[0]), every_ms=100, turns=20)\n"
        "print('read', len(read), min(read) < 2000)"
    )
    assert example.process.wait(TIMEOUT_S) == 0, example.said()
    assert example.said().splitlines()[-1] == "read 20 True"


def test_relay_controller(start: Start) -> None:
    example = start(
        "import relay_controller\n"
        "def pin(on): print('relay', on)\n"
        "relay_controller.main(PORT, {'1': pin})"
    )
    watcher = example.connect("watcher")
    watcher.subscribe("relay/+", qos=1)
    watcher.receive("relay/1", b"off", 1, retain=True)
    watcher.publish("relay/1/set", b"on", 1)  # refused: not a panel
    panel = example.connect("panel-1")
    panel.publish("relay/1/set", b"on", 1)
    watcher.receive("relay/1", b"on", 1)
    panel.sock.close()  # without DISCONNECT
    watcher.receive("relay/1", b"off", 1)
    watcher.sock.close()


def test_asyncio_app(start: Start) -> None:
    example = start("import asyncio_app\nasyncio_app.main(PORT, 0.2)")
    client = example.connect("client")
    client.subscribe("app/done/+", qos=0)
    for name in ("a", "b"):
        client.publish(f"app/do/{name}", b"now", 1)
        client.receive(f"app/done/{name}", b"now", 0)
    client.subscribe("app/heartbeat", qos=0)
    first, second = client.receive_many(1) + client.receive_many(1)
    assert int(second.payload) == int(first.payload) + 1
    client.publish("app/stop", b"", 0)
    assert example.process.wait(TIMEOUT_S) == 0, example.said()
    client.sock.close()


def listens(address: tuple[str, int]) -> None:
    """Wait until something does."""
    deadline = time.monotonic() + TIMEOUT_S
    while True:
        try:
            socket.create_connection(address, TIMEOUT_S).close()
            return
        except OSError:
            assert time.monotonic() < deadline
            time.sleep(0.02)


def test_asyncio_app_over_tls_with_users(tmp_path: Path) -> None:
    Authority(tmp_path).issue("server", "localhost", ("localhost",), 1)
    passwd.put(tmp_path / "users", "alice", "pencil")
    files = [str(tmp_path / name) for name in ("server.crt", "server.key", "users")]
    port = free_port()
    (tmp_path / "run.py").write_text(
        f"import sys\nsys.path.append({str(EXAMPLES)!r})\n"
        f"import asyncio_app\nasyncio_app.main({port}, 0.2, *{files!r})\n"
    )
    command = [sys.executable, str(tmp_path / "run.py")]
    example = Program(tmp_path, port, command, dict(os.environ))
    address = "localhost", port
    login = mqtt_client.Login("alice", "pencil", str(tmp_path / "ca.crt"))
    try:
        listens(address)
        assert "a message came back in" in mqtt_client.try_out(address, login)
        with pytest.raises(ToolError, match=r"Bad user name|Not authorized"):
            mqtt_client.try_out(address, replace(login, password="wrong"))
    finally:
        example.end()


def test_app_as_a_script_prints_what_the_relay_does(tmp_path: Path) -> None:
    example = as_script("app", tmp_path)
    try:
        panel = example.connect("panel-1")
        panel.subscribe("room/temperature", qos=0)
        panel.receive("room/temperature", b"27.0", 0, retain=True)
        panel.publish("relay/1/set", b"on", 1)
        example.says("pin 2: on\n")
        panel.sock.close()
    finally:
        example.end()


def test_the_tests_of_a_client_pass_before_and_after(tmp_path: Path) -> None:
    """With Debian's mosquitto as the command `mosquitto` that test_before.py starts."""
    tests = shutil.copytree(EXAMPLES / "tests_of_a_client", tmp_path / "tests")
    command = tmp_path / "mosquitto"
    command.write_text(f'#!/bin/sh\nexec {shlex.join(mosquitto.broker())} "$@"\n')
    command.chmod(0o755)
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-W", "error", "--rootdir", str(tests), str(tests)],
        env={**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert "3 passed" in done.stdout, done.stdout + done.stderr
