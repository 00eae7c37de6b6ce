"""mosquitto's own broker does what unit/access/acl_vectors.py says about rules and topics."""

import importlib.util
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ..wire import codec
from ..wire.client import Client
from ..wire.process import PEER, BrokerProcess

_SPEC = importlib.util.spec_from_file_location(
    "acl_vectors", Path(__file__).parents[1] / "unit/access/acl_vectors.py"
)
assert _SPEC
assert _SPEC.loader
vectors: Any = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(vectors)

# A client that may do everything; its section follows those of the file.
ROOT = "user the-root\ntopic readwrite #\ntopic readwrite $own/#\n"


@pytest.fixture(params=range(len(vectors.FILES)))
def number(request: pytest.FixtureRequest) -> int:
    return int(request.param)


@pytest.fixture
def broker(number: int, peer: str, tmp_path: Path) -> Iterator[BrokerProcess]:
    rules = tmp_path / "acl"
    rules.write_text(vectors.FILES[number][0] + ROOT)
    as_root = "user root\n" if peer == PEER else ""  # else it could not read the file
    own = BrokerProcess(peer, f"{as_root}acl_file {rules}\nlimit acl_rules 40\n", tmp_path)
    yield own
    if own.alive():
        own.stop()


def login(broker: BrokerProcess, client_id: str, user: str | None) -> Client:
    client = Client(broker.address)
    assert client.connect(codec.connect(client_id, username=user)).code == 0
    return client


@pytest.mark.parametrize("peer", ["cpython", PEER])
def test_each_broker_does_what_is_listed(number: int, broker: BrokerProcess) -> None:
    root = login(broker, "root", "the-root")
    root.subscribe("#", "$own/#", qos=1)
    for client_id, user, topic, expected in vectors.cases(vectors.FILES[number][1]):
        if topic.endswith("/") or "+" in topic:
            continue  # only for the rules: not a topic that a client may publish
        client = login(broker, client_id, user)
        found = ""
        client.request((topic, 1))
        root.publish(topic, b"from root", 1)
        root.receive(topic, b"from root", 1)
        if client.receive_all():
            found += "r"
        client.publish(topic, b"from client", 1)
        messages = [message.payload for message in root.receive_all()]
        if b"from client" in messages:
            found += "w"
        assert found == expected, (client_id, user, topic)
        client.receive_all()
        client.disconnect()
    root.disconnect()
