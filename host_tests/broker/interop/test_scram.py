"""Login by SCRAM-SHA-256 with MQTT.js, the only one of the clients with AUTH in its API."""

from pathlib import Path

import pytest

from ..wire.process import BrokerProcess
from .programs import script, succeed

SCRIPT = Path(__file__).parents[3] / "examples/scram.cjs"
USERS = Path(__file__).parents[1] / "wire5/users.txt"


@pytest.mark.config(f"password_file {USERS}\nallow_anonymous false\nlogin_delay_max 0")
@pytest.mark.ours("mosquitto has plugins for that")
@pytest.mark.parametrize(
    ("name", "password", "code"),
    [("user", "pencil", 0), ("user", "pen", 0x87), ("nobody", "pencil", 0x87)],
    ids=["right", "wrong password", "unknown user"],
)
def test_only_the_right_password_is_accepted(
    broker: BrokerProcess, name: str, password: str, code: int, monkeypatch: pytest.MonkeyPatch
):
    host, port = broker.address
    monkeypatch.setenv("SLOTMQ_PASSWORD", password)
    assert int(succeed(script(SCRIPT, host, str(port), name))) == code
