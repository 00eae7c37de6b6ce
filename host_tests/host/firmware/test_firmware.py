"""firmware/main.py on a computer, where the network is there already; and what is frozen."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from host_tests.broker.wire import codec
from host_tests.broker.wire.client import Client
from slotmq_tools import boards, micropython
from slotmq_tools.pack import mpy
from slotmq_tools.ports import free_port

ROOT = Path(__file__).parents[3]
FIRMWARE = ROOT / "firmware"
TIMEOUT_S = 20


def test_main_py_runs_on_a_computer(runtime: str, tmp_path: Path) -> None:
    port = free_port()
    network = {"board": "RPI_PICO_W", "link": "host"}
    (tmp_path / "network.json").write_text(json.dumps(network))
    (tmp_path / "slotmq.conf").write_text(f"listener {port} 127.0.0.1\nallow_anonymous true\n")
    if runtime == "cpython":
        environment = {
            **os.environ,
            "PYTHONPATH": f"{FIRMWARE}:{os.environ.get('PYTHONPATH', '')}",
        }
        command = [sys.executable, str(FIRMWARE / "main.py")]
    else:
        target = micropython.find(32)
        environment = micropython.environment(mpy.build_for(target), FIRMWARE)
        command = micropython.command(32, 256, FIRMWARE / "main.py")
    with (tmp_path / "output").open("wb") as output:
        process = subprocess.Popen(
            command, cwd=tmp_path, env=environment, stdout=output, stderr=output
        )
    try:
        client = _connected(port, process, tmp_path / "output")
        client.subscribe("news", qos=1)
        client.publish("news", b"x", 1)
        client.receive("news", b"x", 1)
        client.sock.close()
    finally:
        process.kill()
        process.wait()


def _connected(port: int, process: subprocess.Popen[bytes], output: Path) -> Client:
    deadline = time.monotonic() + TIMEOUT_S
    while True:
        try:
            client = Client(("127.0.0.1", port))
            break
        except ConnectionRefusedError:
            assert time.monotonic() < deadline and process.poll() is None, output.read_text()
            time.sleep(0.05)
    assert client.connect(codec.connect("me")).code == 0
    return client


@pytest.mark.parametrize("name", [name for name in boards.names() if boards.load(name).mpy_arch])
def test_a_boards_manifest_freezes_broker_and_firmware(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With MicroPython's functions, as far as manifests use them; `make test-board` has its."""
    frozen: list[str] = []
    ports: list[str] = []

    def package(folder: str, files: list[str] | None = None, **_: object) -> None:
        found = files or [each.name for each in Path(folder).glob("*.py")]
        assert all((Path(folder) / each).is_file() for each in found)
        frozen.extend(f"{folder}/{each}" for each in found)

    def include(path: str) -> None:
        if path.startswith("$"):
            ports.append(path)
            return
        file = Path(path).resolve()
        before = Path.cwd()
        os.chdir(file.parent)
        exec(file.read_text(), functions)
        os.chdir(before)

    functions = {"include": include, "package": package}
    monkeypatch.chdir(ROOT)
    include(f"boards/{name}/manifest.py")
    assert len(ports) == 1 and ports[0].endswith("manifest.py")
    assert {
        "slotmq/broker.py",
        "slotmq/fast/bytes_viper.py",
        "slotmq_run/boot.py",
        "slotmq_run/links.py",
    } <= set(frozen)
