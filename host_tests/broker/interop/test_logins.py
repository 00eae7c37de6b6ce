"""Login by clients of others: mosquitto's with a password, at a file of `slotmq passwd` or
mosquitto_passwd, and MQTT.js by SCRAM-SHA-256, the only one of them with AUTH in its API."""

import base64
import hashlib
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from slotmq_dev.peers import mosquitto
from slotmq_tools import passwd

from ..wire.process import BrokerProcess
from .programs import pub, script, succeed

SALT = bytes(range(12))


def ours(file: Path) -> None:
    passwd.put(file, "alice", "secret")


def theirs(file: Path) -> None:
    subprocess.run([*mosquitto.passwd(), "-c", "-b", file, "alice", "secret"], check=True)


def salted(file: Path) -> None:
    """A line of mosquitto_passwd 1.x."""
    key = hashlib.sha512(b"secret" + SALT).digest()
    fields = [base64.b64encode(each).decode() for each in (SALT, key)]
    file.write_text("alice:$6${}${}\n".format(*fields))


@pytest.mark.parametrize("make", [ours, theirs, salted], ids=lambda make: make.__name__)
@pytest.mark.parametrize("version", ["mqttv31", "mqttv311", "mqttv5"])
@pytest.mark.ours("its users are in the file of this test")
def test_only_the_right_password_is_accepted(
    make: Callable[[Path], None], version: str, tmp_path: Path
) -> None:
    users = tmp_path / "users"
    make(users)
    conf = f"password_file {users}\nallow_anonymous false\nlogin_delay_max 0\n"
    broker = BrokerProcess("cpython", conf, tmp_path)
    try:
        say = ("-V", version, "-t", "t", "-m", "x")
        succeed(pub(broker.address, *say, "-u", "alice", "-P", "secret"))
        for who in (("alice", "wrong"), ("bob", "secret"), ("alice", "")):
            refused = pub(broker.address, *say, "-u", who[0], "-P", who[1])
            assert refused.returncode and b"user name or password" in refused.stderr.lower(), who
        assert b"authori" in pub(broker.address, *say).stderr
    finally:
        broker.stop()


SCRIPT = Path(__file__).parents[3] / "examples/scram.cjs"
USERS = Path(__file__).parents[1] / "wire5/users.txt"


@pytest.mark.config(f"password_file {USERS}\nallow_anonymous false\nlogin_delay_max 0")
@pytest.mark.ours("mosquitto has plugins for that")
@pytest.mark.parametrize(
    ("name", "password", "code"),
    [("user", "pencil", 0), ("user", "pen", 0x87), ("nobody", "pencil", 0x87)],
    ids=["right", "wrong password", "unknown user"],
)
def test_scram_accepts_only_the_right_password(
    broker: BrokerProcess, name: str, password: str, code: int, monkeypatch: pytest.MonkeyPatch
):
    host, port = broker.address
    monkeypatch.setenv("SLOTMQ_PASSWORD", password)
    assert int(succeed(script(SCRIPT, host, str(port), name))) == code
