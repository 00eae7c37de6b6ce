"""The running command `slotmq run`: signals, reload, log and shutdown."""

import errno
import os
import re
import signal
import socket
from contextlib import ExitStack
from pathlib import Path

import pytest

from slotmq_tools import passwd
from slotmq_tools.ports import free_port

from ..support.program import CONNACK, CONNECT, TIMEOUT_S, Start, conf, exchange, serves
from .wire import codec

SUBSCRIBE = bytes.fromhex("8208 0001 0003 612f62 00")  # to a/b
LOGIN = codec.connect("a", username="user", password=b"pencil")
SUBACK = bytes.fromhex("9003 0001 00")


def test_one_client_too_many_on_a_listener_is_refused_with_code_3(
    start: Start, tmp_path: Path
) -> None:
    port, other = free_port(), free_port()
    lines = f"listener {port}", "max_connections 2", f"listener {other}", "allow_anonymous true"
    run = start("-c", conf(tmp_path, *lines))
    run.headline()
    addresses = [("127.0.0.1", port), ("::1", port)]
    clients = [
        exchange(where, (codec.connect("ab"[i]), CONNACK)) for i, where in enumerate(addresses)
    ]
    for where in addresses:
        with exchange(where, (CONNECT, bytes.fromhex("2002 0003"))) as third:
            assert third.recv(1) == b""
    run.wait_for(lambda: "(return code 3)" in run.errors.read_text(), "it in the log")
    clients.append(exchange(("127.0.0.1", other), (CONNECT, CONNACK)))
    clients.append(exchange(addresses[0], (codec.connect("b"), CONNACK)))
    assert clients[1].recv(1) == b"", "taken over"
    run.stop()
    for client in clients:
        client.close()


def test_many_connections_wait_in_the_backlog(start: Start) -> None:
    """A connection that the system drops is tried again only after a second."""
    port = free_port()
    run = start("-p", port)
    run.headline()
    most = int(Path("/proc/sys/net/core/somaxconn").read_text())  # of the system
    with ExitStack() as stack, run.halted():
        storm = [stack.enter_context(socket.socket()) for _ in range(min(400, most))]
        for sock in storm:
            sock.setblocking(False)
            sock.connect_ex(("127.0.0.1", port))
        answers = {sock.connect_ex(("127.0.0.1", port)) for sock in storm}
        assert answers <= {0, errno.EISCONN}
    assert serves("127.0.0.1", port)
    run.stop()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_stops_it_in_order(number: signal.Signals, start: Start) -> None:
    port = free_port()
    run = start("-p", port)
    run.headline()
    with exchange(("127.0.0.1", port), (CONNECT, CONNACK)) as client:
        run.stop(number)
        assert client.recv(1) == b""
    assert not serves("127.0.0.1", port)


def test_the_process_that_listens_takes_signals_itself(start: Start) -> None:
    """A user who looks up the owner of the port sends it there; the will is published."""
    port = free_port()
    run = start("-p", port)
    run.headline()
    subscribe = (b"\x82\x06\0\1\0\1w\0", b"\x90\3\0\1\0")
    dying = b"\x10\x14\0\4MQTT\4\6\0<\0\1d\0\1w\0\2me"
    with (
        exchange(("127.0.0.1", port), (CONNECT, CONNACK), subscribe) as client,
        exchange(("127.0.0.1", port), (dying, CONNACK)),
    ):
        os.kill(listener(run.process.pid), signal.SIGTERM)
        assert client.recv(100) == b"\x30\5\0\1wme"
        assert client.recv(1) == b""
    assert run.process.wait(TIMEOUT_S) == 0
    assert run.errors.read_text().count("Traceback") == 0


def listener(pid: int) -> int:
    """The launcher's child if it has one, else itself."""
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return int(children[0]) if children else pid


def test_it_starts_again_at_once_on_the_same_port(start: Start) -> None:
    port = free_port()
    for _ in range(2):
        run = start("-p", port)
        run.headline()
        client = exchange(("127.0.0.1", port), (CONNECT, CONNACK))
        run.stop()
        client.close()


def test_sighup_reloads_some_keys_and_names_the_others(start: Start, tmp_path: Path) -> None:
    port = free_port()
    keys = f"listener {port} 127.0.0.1", "allow_anonymous true"
    path = conf(tmp_path, *keys, "max_inflight_messages 6")
    run = start("-c", path)
    run.headline()
    assert serves("127.0.0.1", port)
    later = keys[0], "allow_anonymous false", "max_inflight_messages 3"
    conf(tmp_path, *later, "qos2_delivery release")
    run.process.send_signal(signal.SIGHUP)
    run.wait_for(lambda: "qos2_delivery" in run.errors.read_text(), "what only a restart changes")
    logged = run.errors.read_text().splitlines()
    changed, fixed = (next(x for x in logged if key in x) for key in ("allow_anon", "qos2_deliv"))
    assert "restart" in fixed
    assert "restart" not in changed
    text = "max_inflight_messages: until a restart each client may send 6 at a time."
    run.wait_for(lambda: text in run.errors.read_text(), "what only a restart lowers")
    exchange(("127.0.0.1", port), (CONNECT, bytes.fromhex("2002 0005"))).close()
    run.stop()


def test_sighup_reads_the_users_again(start: Start, tmp_path: Path) -> None:
    """A user that is gone is disconnected; a bad file leaves the users as they are."""
    users = tmp_path / "users"
    passwd.put(users, "user", "pencil")
    port = free_port()
    run = start("-c", conf(tmp_path, f"listener {port} 127.0.0.1", f"password_file {users}"))
    run.headline()
    client = exchange(("127.0.0.1", port), (LOGIN, bytes.fromhex("2002 0000")))
    good = users.read_bytes()
    users.write_bytes(good + b"nonsense\n")
    run.process.send_signal(signal.SIGHUP)
    run.wait_for(lambda: f"{users}:3: " in run.everything(), "the error")
    other = codec.connect("b", username="user", password=b"pencil")
    exchange(("127.0.0.1", port), (other, bytes.fromhex("2002 0000"))).close()
    users.write_bytes(b"")
    run.process.send_signal(signal.SIGHUP)
    assert client.recv(1) == b""
    exchange(("127.0.0.1", port), (LOGIN, bytes.fromhex("2002 0004"))).close()
    client.close()
    run.stop()


def test_each_listener_has_its_own_rules(start: Start, runtime: str, tmp_path: Path) -> None:
    """per_listener_settings, on CPython; SIGHUP reads each file again."""
    ports = [free_port() for _ in range(3)]
    lines = ["per_listener_settings true"]
    for number, port in enumerate(ports):
        lines += [f"listener {port} 127.0.0.1", "allow_anonymous true"]
        if number < 2:
            (tmp_path / f"rules{number}").write_text(
                ("topic read a/b\n", "topic read c\n")[number]
            )
            lines.append(f"acl_file {tmp_path}/rules{number}")
    run = start("-c", conf(tmp_path, *lines))
    if runtime == "micropython":
        run.wait_for(run.ended, "its end")
        assert "on a board the same file below each listener" in run.everything()
        return
    run.headline()

    def answers(*codes: str) -> None:
        for port, code in zip(ports, codes, strict=True):
            suback = SUBACK[:-1] + bytes.fromhex(code)
            where = "127.0.0.1", port
            with exchange(where, (codec.connect(f"c{port}"), CONNACK), (SUBSCRIBE, suback)):
                pass

    answers("00", "80", "00")
    (tmp_path / "rules0").write_text("topic read other\n")
    (tmp_path / "rules1").write_text("topic read a/+\n")
    run.process.send_signal(signal.SIGHUP)
    run.wait_for(lambda: "rules1: 2 rules." in run.everything(), "the new rules")
    answers("80", "00", "00")
    run.stop()


def test_a_reload_of_a_bad_file_changes_nothing(start: Start, tmp_path: Path) -> None:
    port = free_port()
    listener = f"listener {port} 127.0.0.1"
    run = start("-c", conf(tmp_path, listener, "allow_anonymous true"))
    run.headline()
    conf(tmp_path, listener, "allow_anonymous maybe")
    run.process.send_signal(signal.SIGHUP)
    run.wait_for(lambda: "2: allow_anonymous: " in run.everything(), "the error")
    assert serves("127.0.0.1", port)
    run.stop()


def test_sigusr2_prints_the_subscription_tree(start: Start) -> None:
    port = free_port()
    run = start("-p", port)
    run.headline()
    with exchange(("127.0.0.1", port), (CONNECT, CONNACK), (SUBSCRIBE, SUBACK)):
        run.process.send_signal(signal.SIGUSR2)
        run.wait_for(lambda: "a" in run.output.read_text().partition("\n")[2], "the tree")
        run.stop()
    assert "$SYS" not in run.errors.read_text()


def test_in_the_background_the_tree_is_in_the_log_file(start: Start, tmp_path: Path) -> None:
    port, pid_file, log = free_port(), tmp_path / "pid", tmp_path / "log"
    own = f"listener {port} 127.0.0.1", "allow_anonymous true", f"pid_file {pid_file}"
    run = start("-d", "-c", conf(tmp_path, *own, f"log_dest file {log}", "log_type none"))
    assert run.process.wait(TIMEOUT_S) == 0
    try:
        with exchange(("127.0.0.1", port), (CONNECT, CONNACK), (SUBSCRIBE, SUBACK)):
            os.kill(int(pid_file.read_text()), signal.SIGUSR2)
            run.wait_for(lambda: "   b (auto-" in log.read_text(), "the tree")
        assert re.fullmatch(r"(\d{10}: .*\n){4}", log.read_text())  # the headline is the first
    finally:
        os.kill(int(pid_file.read_text()), signal.SIGTERM)
    run.wait_for(lambda: not pid_file.exists(), "its end")


def test_sigusr1_without_a_journal_does_nothing(start: Start) -> None:
    port = free_port()
    run = start("-p", port)
    run.headline()
    run.process.send_signal(signal.SIGUSR1)
    assert serves("127.0.0.1", port)
    run.stop()


def test_the_pid_file_names_the_process_that_takes_signals(start: Start, tmp_path: Path) -> None:
    pid_file = tmp_path / "pid"
    path = conf(tmp_path, f"listener {free_port()} 127.0.0.1", f"pid_file {pid_file}")
    run = start("-c", path)
    run.headline()
    assert pid_file.read_text() == f"{run.process.pid}\n"
    run.stop()
    assert not pid_file.exists()


def test_the_log_as_messages_until_a_reload(start: Start, tmp_path: Path) -> None:
    port, log = free_port(), tmp_path / "log"
    lines = f"listener {port} 127.0.0.1", "allow_anonymous true", f"log_dest file {log}"
    path = conf(tmp_path, *lines, "log_dest topic")
    run = start("-c", path)
    run.headline()
    where = "127.0.0.1", port
    subscribe = codec.subscribe(1, ("$SYS/broker/log/N", 1))
    with exchange(where, (CONNECT, CONNACK), (subscribe, bytes.fromhex("9003 0001 01"))) as reader:
        exchange(where, (codec.connect("b"), CONNACK)).close()
        got = b""
        while b"Client 'b' [" not in got:
            more = reader.recv(4096)
            assert more, run.everything()
            got += more
        assert re.search(rb"\$SYS/broker/log/N\d{10}: New client connected from .* as 'b'", got)
        conf(tmp_path, *lines)
        run.process.send_signal(signal.SIGHUP)
        run.wait_for(lambda: "changed: log_dest" in log.read_text(), "the reload")
        exchange(where, (codec.connect("c"), CONNACK)).close()
        run.wait_for(lambda: "Client 'c' [" in log.read_text(), "the next client")
        reader.sendall(b"\xc0\0")
        while not got.endswith(b"\xd0\0"):
            more = reader.recv(4096)
            assert more, run.everything()
            got += more
        assert b"as 'c'" not in got
    run.stop()


def test_verbose_logs_every_type(start: Start, tmp_path: Path) -> None:
    port = free_port()
    log = tmp_path / "log"
    lines = f"listener {port}", "allow_anonymous true", f"log_dest file {log}", "log_type none"
    path = conf(tmp_path, *lines)
    run = start("-c", path, "-v")
    run.headline()
    assert serves("127.0.0.1", port)
    run.wait_for(lambda: "connected" in log.read_text(), "a line in the log")
    run.stop()
    assert re.fullmatch(r"(\d{10}: .*\n)+", log.read_text())
    assert run.errors.read_text() == ""


def test_a_log_file_has_start_and_end(start: Start, tmp_path: Path) -> None:
    log = tmp_path / "log"
    lines = f"listener {free_port()} 127.0.0.1", f"log_dest file {log}", "log_type error"
    run = start("-c", conf(tmp_path, *lines))
    headline = run.headline().strip()
    run.stop()
    first, last = log.read_text().splitlines()
    assert first.partition(": ")[2] == headline
    assert last.partition(": ")[2] == "slotmq ends"


@pytest.mark.parametrize(
    ("lines", "lost"),
    [
        ([], True),
        (["log_dest stdout"], True),
        (["log_dest none"], False),
        (["log_dest topic"], False),
        (["log_dest stderr", "log_dest file LOG"], False),
    ],
)
def test_a_start_in_the_background_warns_if_the_log_is_lost(
    lines: list[str], lost: bool, start: Start, tmp_path: Path
) -> None:
    pid_file = tmp_path / "pid"
    dests = [line.replace("LOG", str(tmp_path / "log")) for line in lines]
    own = f"listener {free_port()} 127.0.0.1", f"pid_file {pid_file}"
    run = start("-d", "-c", conf(tmp_path, *own, *dests))
    assert run.process.wait(TIMEOUT_S) == 0
    os.kill(int(pid_file.read_text()), signal.SIGTERM)
    assert run.errors.read_text().count("`log_dest file PATH`") == lost
    run.wait_for(lambda: not pid_file.exists(), "its end")


@pytest.mark.parametrize("small", [(), ("--small",)], ids=["", "small"])
def test_only_its_user_reads_its_journal_recordings_and_log(
    small: tuple[str, ...], start: Start, tmp_path: Path
) -> None:
    port = free_port()
    data = tmp_path / "data"
    data.mkdir()
    lines = f"listener {port} 127.0.0.1", "allow_anonymous true", f"log_dest file {data}/log"
    kept = "persistence true", f"persistence_location {data}", "log_type all"
    recorded = "record #", f"record_location {data}/record"
    run = start("-c", conf(tmp_path, *lines, *kept, *recorded), *small)
    run.headline()
    message = codec.publish("a", b"kept", 1, 7, retain=True)
    with exchange(("127.0.0.1", port), (CONNECT, CONNACK), (message, b"\x40\2\0\7")):
        pass
    run.stop()
    files = [path for path in data.rglob("*") if path.is_file()]
    assert {"log", "ring"} <= {path.name for path in files}
    assert len(files) > 3
    assert {str(path): path.stat().st_mode & 0o77 for path in files} == dict.fromkeys(
        map(str, files), 0
    )
