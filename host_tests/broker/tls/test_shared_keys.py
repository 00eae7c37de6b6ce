"""TLS with shared keys, on a Python that can serve it: Debian's 3.13."""

import os
import subprocess
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from slotmq_dev.peers import mosquitto, python313
from slotmq_tools.config.check import check
from slotmq_tools.ports import free_port

from ...support.program import TIMEOUT_S, Run, conf

PACKAGES = Path(__file__).parents[3] / ".venv/packages"
PROGRAM = "import sys; from slotmq.app import main; sys.exit(main(sys.argv[1:]))"
KEY = "00112233445566778899aabbccddeeff"
pytestmark = pytest.mark.nightly


class With313(Run):
    """The broker on Python 3.13."""

    def __init__(self, folder: Path, *options: object) -> None:
        self.output, self.errors = folder / "stdout", folder / "stderr"
        command = [*python313.command(), "-u", "-c", PROGRAM, *map(str, options)]
        environment = {**os.environ, "PYTHONPATH": str(PACKAGES)}
        with self.output.open("w") as output, self.errors.open("w") as errors:
            self.process = subprocess.Popen(command, stdout=output, stderr=errors, env=environment)


@pytest.fixture
def port() -> int:
    return free_port()


@pytest.fixture
def run(port: int, tmp_path: Path) -> Iterator[Run]:
    (tmp_path / "keys").write_text(f"# identities\nalice:{KEY}\nbob:{KEY[::-1]}\n")
    (tmp_path / "rules").write_text("user alice\ntopic own\n")
    lines = f"listener {port}", f"psk_file {tmp_path}/keys", "psk_hint home"
    more = "use_identity_as_username true", f"acl_file {tmp_path}/rules"
    one = With313(tmp_path, "-c", conf(tmp_path, *lines, *more))
    one.headline()
    yield one
    one.process.kill()
    one.process.wait()


def client(kind: list[str], port: int, identity: str, key: str, *more: str) -> list[str]:
    where = "-h", "127.0.0.1", "-p", str(port), "--psk-identity", identity, "--psk", key
    return [*kind, *where, "-t", "own", "-q", "1", *more]


def test_the_identity_is_the_user_for_rules(run: Run, port: int) -> None:
    listen = client(mosquitto.subscribe(), port, "alice", KEY, "-C", "1", "-W", "20")
    with subprocess.Popen(listen, stdout=subprocess.PIPE) as listener:
        run.wait_for(lambda: "u'alice'" in run.everything(), "alice")
        for identity, key in (("bob", KEY[::-1]), ("alice", KEY)):
            command = client(mosquitto.publish(), port, identity, key, "-m", identity)
            subprocess.run(command, check=True, timeout=TIMEOUT_S)
        assert listener.communicate(timeout=TIMEOUT_S)[0] == b"alice\n"


def bridge(folder: Path, port: int, key: str) -> With313:
    """A broker whose bridge has this key."""
    folder.mkdir()
    lines = "log_type all", f"listener {free_port()}", "connection up", f"address 127.0.0.1:{port}"
    more = "topic own both 1", "bridge_identity alice", f"bridge_psk {key}"
    return With313(folder, "-c", conf(folder, *lines, *more))


def says(one: With313, text: str) -> bool:
    return text in one.everything()


def test_a_bridge_with_a_shared_key(run: Run, port: int, tmp_path: Path) -> None:
    for key, text in ((KEY[::-1], "TLS: "), (KEY, "Bridge 'up': up, ")):
        one = bridge(tmp_path / key, port, key)
        try:
            one.wait_for(partial(says, one, text), text)
        finally:
            one.process.kill()
            one.process.wait()
    assert "u'alice'" in run.everything()


@pytest.mark.parametrize(("identity", "key"), [("alice", KEY[::-1]), ("carol", KEY)])
def test_a_wrong_key_or_identity(identity: str, key: str, run: Run, port: int) -> None:
    command = client(mosquitto.publish(), port, identity, key, "-m", "x")
    assert subprocess.run(command, timeout=TIMEOUT_S, check=False).returncode != 0
    run.wait_for(lambda: "closed: lost (TLS: " in run.everything(), "the reason")
    command = client(mosquitto.publish(), port, "alice", KEY, "-m", "x")
    subprocess.run(command, check=True, timeout=TIMEOUT_S)


@pytest.mark.parametrize(
    ("lines", "text"),
    [
        (["psk_file keys"], "psk_hint on the same listener"),
        (
            ["psk_file wrong", "psk_hint a"],
            "lines IDENTITY:KEY, the key in hexadecimal digits, als",
        ),
        (["psk_file keys", "psk_hint a", "cafile keys"], "expected another listener for psk_file"),
    ],
)
def test_errors(lines: list[str], text: str, tmp_path: Path) -> None:
    (tmp_path / "keys").write_text(f"alice:{KEY}\n")
    (tmp_path / "wrong").write_text("alice:xyz\n")
    names = [
        line.replace("_file ", f"_file {tmp_path}/").replace("cafile ", f"cafile {tmp_path}/")
        for line in lines
    ]
    one = With313(tmp_path, "-c", conf(tmp_path, "listener 8883", *names))
    assert one.process.wait(TIMEOUT_S) == 3
    assert text in one.errors.read_text()


def test_an_older_python_says_what_it_lacks(tmp_path: Path) -> None:
    """It never serves plain MQTT instead."""
    file = conf(tmp_path, "listener 8883", "psk_hint a", f"psk_file {tmp_path}/keys")
    (tmp_path / "keys").write_text(f"alice:{KEY}\n")
    errors, _ = check(file, "HOST")
    if errors:  # on 3.11 and 3.12
        assert "TLS with shared keys needs CPython 3.13" in errors[0]
