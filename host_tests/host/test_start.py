"""The start of `slotmq run`: its first line, where it listens, and starts that are refused."""

import os
import re
import socket
from collections.abc import Sequence
from pathlib import Path

import psutil
import pytest

from slotmq_tools.ports import free_port

from ..support.program import CONNACK, CONNECT, TIMEOUT_S, Start, conf, exchange, serves

IMPLEMENTATION = {
    "cpython": r"CPython \d+\.\d+\.\d+ \(64-bit\), board {board}, heap without a limit",
    "micropython": r"MicroPython \d+\.\d+\.\d+ \(32-bit\), board {board}, heap {heap} KB",
}


@pytest.mark.parametrize(
    ("board", "options", "heap"),
    [
        ("HOST", (), 65536),
        ("RPI_PICO_W", (), 160),
        ("RPI_PICO_W", ("--heap", 200), 200),
    ],
)
def test_the_first_line_names_version_runtime_board_and_addresses(
    board: str, options: Sequence[object], heap: int, runtime: str, start: Start
) -> None:
    if runtime == "cpython":  # which has no --heap
        options = ()
    port = free_port()
    run = start("-p", port, "--board", board, *options)
    what = IMPLEMENTATION[runtime].format(board=board, heap=heap)
    where = rf"127\.0\.0\.1:{port}, \[::1\]:{port}"
    line = rf"slotmq \d+\.\d+\.\d+ on {what}, listening on {where}"
    assert re.fullmatch(line, run.headline())
    run.stop()
    assert len(run.output.read_text().splitlines()) == 1


def test_without_a_configuration_it_serves_loopback_only(start: Start) -> None:
    port = free_port()
    run = start("-p", port)
    run.headline()
    assert serves("127.0.0.1", port)
    assert serves("::1", port)
    assert not serves(other_address(), port)


def other_address() -> str:
    """An address of this machine that is not 127.0.0.1."""
    return "127.0.0.2"  # all of 127/8 is, on Linux


def test_host_names_the_address(start: Start) -> None:
    port = free_port()
    assert start("-p", port, "--host", "127.0.0.2").headline().endswith(f" 127.0.0.2:{port}")
    assert serves("127.0.0.2", port)
    assert not serves("127.0.0.1", port)


@pytest.mark.parametrize("lines", [[], ["listener {port} 127.0.0.1"]], ids=["alone", "beside"])
def test_an_address_without_a_port_means_1883(
    lines: list[str], start: Start, tmp_path: Path
) -> None:
    host = f"127.{os.getpid() >> 14 & 255}.{os.getpid() >> 7 & 127}.{2 + (os.getpid() & 127)}"
    port = free_port()
    path = conf(tmp_path, "allow_anonymous true", *[line.format(port=port) for line in lines])
    run = start("-c", path, "--host", host)
    beside = f"127.0.0.1:{port}, " if lines else ""
    assert run.headline().endswith(f" listening on {beside}{host}:1883")
    assert serves(host, 1883)
    assert serves("127.0.0.1", port) == bool(lines)
    run.stop()


def test_a_listener_without_an_address_serves_all_addresses(start: Start, tmp_path: Path) -> None:
    port = free_port()
    run = start("-c", conf(tmp_path, f"listener {port}", "allow_anonymous true"))
    assert run.headline().endswith(f" listening on 0.0.0.0:{port}, [::]:{port}")
    for host in ("127.0.0.1", "127.0.0.2", "::1"):
        assert serves(host, port)
    run.stop()


def test_several_listeners(start: Start, tmp_path: Path) -> None:
    first, second, third = free_port(), free_port(), free_port()
    lines = f"listener {first} 127.0.0.1", f"listener {second} ::1", "allow_anonymous true"
    run = start("-c", conf(tmp_path, *lines), "-p", third)
    where = f"127.0.0.1:{first}, [::1]:{second}, 127.0.0.1:{third}, [::1]:{third}"
    assert run.headline().endswith(f" listening on {where}")
    for address in (("127.0.0.1", first), ("::1", second), ("127.0.0.1", third)):
        assert serves(*address)
    assert not serves("::1", first)


def test_a_port_that_the_configuration_has_is_not_added_twice(
    start: Start, tmp_path: Path
) -> None:
    port = free_port()
    run = start("-c", conf(tmp_path, f"listener {port} 127.0.0.1"), "-p", port)
    assert run.headline().endswith(f" listening on 127.0.0.1:{port}")


def test_anonymous_clients_are_refused_by_default(start: Start, tmp_path: Path) -> None:
    port = free_port()
    start("-c", conf(tmp_path, f"listener {port}")).headline()
    not_authorized = bytes.fromhex("2002 0005")
    exchange(("127.0.0.1", port), (CONNECT, not_authorized)).close()


def test_a_family_of_addresses(start: Start, tmp_path: Path) -> None:
    port = free_port()
    lines = f"listener {port}", "socket_domain ipv4", "allow_anonymous true"
    run = start("-c", conf(tmp_path, *lines))
    assert run.headline().endswith(f" listening on 0.0.0.0:{port}")
    assert serves("127.0.0.1", port)
    assert not serves("::1", port)
    run.stop()


class TestUnixSocket:
    @pytest.fixture
    def path(self, tmp_path: Path) -> Path:
        return tmp_path / "mqtt.sock"

    def conf(self, path: Path) -> Path:
        return conf(path.parent, f"listener 0 {path}", "allow_anonymous true")

    def serves(self, path: Path) -> bool:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as sock:
            sock.settimeout(TIMEOUT_S)
            sock.connect(str(path))
            sock.sendall(CONNECT)
            return sock.recv(len(CONNACK)) == CONNACK

    def test_cpython_serves_it_and_removes_it(
        self, path: Path, runtime: str, start: Start
    ) -> None:
        run = start("-c", self.conf(path))
        if runtime == "micropython":
            status, line = run.refusal()
            assert (status, ":1: listener: " in line, "CPython" in line) == (3, True, True), line
            return
        assert run.headline().endswith(f" listening on {path}")
        assert self.serves(path)
        assert self.serves(path)
        run.stop()
        assert not path.exists()
        assert f"from {path}:0 " in run.everything()

    def test_one_of_a_killed_broker_is_replaced(
        self, path: Path, runtime: str, start: Start
    ) -> None:
        if runtime == "micropython":
            return
        run = start("-c", self.conf(path))
        run.headline()
        run.kill()
        assert path.exists()
        run = start("-c", self.conf(path))
        assert "listening" in run.headline()
        assert self.serves(path)
        run.stop()

    @pytest.mark.parametrize("taken", ["in use", "a file"])
    def test_what_has_that_name_stays(
        self, taken: str, path: Path, runtime: str, start: Start
    ) -> None:
        if runtime == "micropython":
            return
        file = self.conf(path)
        if taken == "a file":
            path.write_text("mine")
        else:
            start("-c", file).headline()
        status, line = start("-c", file).refusal()
        assert status == 1 and line.startswith(f"slotmq: {file}:1: listener: "), line
        assert path.read_text() == "mine" if taken == "a file" else self.serves(path)


def test_an_interface(runtime: str, start: Start, tmp_path: Path) -> None:
    port = free_port()
    lines = f"listener {port} 127.0.0.1", "bind_interface lo", "allow_anonymous true"
    run = start("-c", conf(tmp_path, *lines))
    if runtime == "micropython":
        status, line = run.refusal()
        assert (status, ":2: bind_interface: " in line) == (3, True), line
        return
    assert run.headline().endswith(f" listening on 127.0.0.1:{port}")
    assert serves("127.0.0.1", port)
    run.stop()


def test_an_interface_that_is_not_there(runtime: str, start: Start, tmp_path: Path) -> None:
    lines = f"listener {free_port()} 127.0.0.1", "bind_interface none0"
    status, line = start("-c", conf(tmp_path, *lines)).refusal()
    assert status == (3 if runtime == "micropython" else 1)
    assert ": listener: " in line or ": bind_interface: " in line, line


# Starts that are refused


# Lines of the configuration, the last of which is refused, and what is said of it
REFUSED = {
    "max_qos": ("# mine", "max_qos 3", ""),
    "max_inflight_messages": (
        "limit deliveries 2000",
        "max_inflight_messages 2001",
        "at most 2000",
    ),
    "server_reference": ("limit tx_bytes 640", f"server_reference {'x' * 330}", "320 bytes"),
}


@pytest.mark.parametrize("key", REFUSED)
def test_a_bad_configuration(key: str, start: Start, tmp_path: Path) -> None:
    *lines, why = REFUSED[key]
    path = conf(tmp_path, *lines)
    status, line = start("-c", path).refusal()
    assert status == 3
    assert line.startswith(f"slotmq: {path}:2: {key}: ") and why in line, line


def test_a_missing_configuration(start: Start, tmp_path: Path) -> None:
    status, line = start("-c", tmp_path / "none").refusal()
    assert (status, str(tmp_path / "none") in line) == (3, True), line


@pytest.mark.parametrize(
    ("key", "before"), [("log_dest", "file "), ("pid_file", ""), ("password_file", "")]
)
@pytest.mark.parametrize("name", ["none/such", ""], ids=["missing", "folder"])
def test_a_file_that_cannot_be_opened(
    key: str, before: str, name: str, start: Start, tmp_path: Path
) -> None:
    own = f"listener {free_port()} 127.0.0.1"
    path = conf(tmp_path, own, f"{key} {before}{tmp_path / name}")
    status, line = start("-c", path).refusal()
    assert status == 3
    assert line.startswith(f"slotmq: {path}:2: {key}: ") and "[Errno " in line, line


def test_a_line_of_another_format_in_password_file(start: Start, tmp_path: Path) -> None:
    users = tmp_path / "users"
    users.write_text("# mine\nalice:secret\n")
    status, line = start("-c", conf(tmp_path, f"password_file {users}")).refusal()
    assert status == 3
    assert line.startswith(f"slotmq: {users}:2: ") and "name:iterations" in line, line


@pytest.mark.parametrize(
    ("key", "lines"),
    [
        ("listener", ["listener {port} 127.0.0.1"]),
        ("listener", ["listener {port}"]),
        ("listener", ["listener {port} no.such.host.invalid"]),
        ("listener", ["listener {port} 192.0.2.1"]),  # a documentation address (RFC 5737)
        ("port", ["port {port}"]),
        ("bind_address", ["bind_address 127.0.0.1", "port {port}"]),
    ],
)
def test_a_listener_that_cannot_be_bound(
    key: str, lines: list[str], start: Start, tmp_path: Path
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        other = f"listener {free_port()} ::1"
        path = conf(tmp_path, *[line.format(port=port) for line in lines], other)
        status, line = start("-c", path).refusal()
    assert status == 1
    assert line.startswith(f"slotmq: {path}:1: {key}: ") and f":{port} (" in line, line


@pytest.mark.parametrize(("host", "shown"), [("127.0.0.1", "127.0.0.1"), ("::1", "[::1]")])
def test_an_address_in_use(host: str, shown: str, start: Start) -> None:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.create_server((host, 0), family=family) as server:
        port = server.getsockname()[1]
        status, line = start("-p", port).refusal()
    assert status == 1
    assert f" {shown}:{port}: " in line, line


def test_an_unknown_host(start: Start) -> None:
    status, line = start("--host", "no.such.host.invalid").refusal()
    assert status == 1
    assert "no.such.host.invalid:1883" in line


def test_tables_that_do_not_fit_the_heap(runtime: str, start: Start, tmp_path: Path) -> None:
    path = conf(tmp_path, f"listener {free_port()}", "limit message_bytes 100000")
    run = start("-c", path, "--board", "RPI_PICO_W")
    if runtime == "cpython":  # which has no fixed heap
        assert "listening" in run.headline()
        return
    status, line = run.refusal()
    assert status == 1
    assert line.startswith("slotmq: heap 160 KB: ") and "limit message_bytes" in line, line
    tables, left, _clients, few, saved = map(int, re.findall(r"\d+", line)[1:6])
    assert few == tables - left <= saved < tables
    assert line.endswith(
        f"lower limit message_bytes ({saved} bytes less with 9856 than with 100000)"
    )


# Lines, and the limits that the refusal names: what was raised, and enough of it
RAISED = {
    "messages": (("messages 10000",), ["messages"]),
    "most first": (("messages 9000", "nodes 4000", "subscriptions 60"), ["messages", "nodes"]),
    "not what another one needs": (("max_packet 60000", "message_bytes 61440"), ["max_packet"]),
}


@pytest.mark.parametrize("case", RAISED)
def test_the_limits_that_are_too_high_are_named(
    runtime: str, start: Start, tmp_path: Path, case: str
) -> None:
    lines, names = RAISED[case]
    path = conf(tmp_path, f"listener {free_port()}", *(f"limit {line}" for line in lines))
    if runtime == "cpython":
        return
    _, line = start("-c", path, "--board", "RPI_PICO_W").refusal()
    assert re.findall(r"(\w+) \(\d+ bytes less", line) == names, line


@pytest.mark.parametrize("limit", ["aliases 40", "shares 800"])
def test_tables_of_version_5_take_no_heap_if_only_version_3_is_spoken(
    limit: str, runtime: str, start: Start, tmp_path: Path
) -> None:
    address = ("127.0.0.1", free_port())
    lines = f"listener {address[1]} 127.0.0.1", f"limit {limit}", "allow_anonymous true"
    run = start("-c", conf(tmp_path, *lines), "--board", "RPI_PICO_W")
    if runtime == "cpython":  # which has no fixed heap
        assert "listening" in run.headline()
        run.stop()
    else:
        status, line = run.refusal()
        assert status == 1
        name = limit.split()[0]
        assert f"limit {name} " in line, line
    run = start("-c", conf(tmp_path, *lines, "mqtt_versions 3"), "--board", "RPI_PICO_W")
    assert "listening" in run.headline()
    exchange(address, (CONNECT, CONNACK)).close()
    run.stop()


# 16 KB are too few for the first file, 30 not all of them, 44 not what the start loads on demand.
@pytest.mark.parametrize("heap_kb", [16, 30, 44])
def test_code_that_does_not_fit_the_heap(heap_kb: int, runtime: str, start: Start) -> None:
    if runtime == "cpython":
        return
    status, line = start("--board", "RPI_PICO_W", "--heap", heap_kb).refusal()
    assert (status, "code" in line) == (1, True), line
    assert f"heap {heap_kb} KB" in line


def test_pages_that_nobody_uses_are_not_resident(runtime: str, start: Start) -> None:
    run = start("-p", free_port())
    run.headline()
    broker = psutil.Process(run.process.pid)
    (broker,) = broker.children() or [broker]  # MicroPython is the command's child
    megabytes = broker.memory_info().rss / 1e6
    assert megabytes < (16 if runtime == "micropython" else 36)  # 11 and 26; CPython's vary
