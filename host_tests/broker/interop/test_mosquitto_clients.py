"""mosquitto_pub and mosquitto_sub, as users run them in a shell.

What they do with MQTT 5.0 is in test_scenario5.py.
"""

from pathlib import Path

import pytest

from ..wire.process import BrokerProcess
from .programs import pub, sub, subscriber, succeed

VERSIONS = ["mqttv31", "mqttv311"]
LARGE = b"0123456789abcdef" * 1280  # 20 KB
FORMAT = ("-F", "%t %q %r %l")  # topic, QoS, retain, length


@pytest.fixture(params=VERSIONS)
def version(request: pytest.FixtureRequest) -> tuple[str, str]:
    return "-V", str(request.param)


def test_messages_of_every_qos(
    broker: BrokerProcess, base: str, version: tuple[str, str], tmp_path: Path
):
    large = tmp_path / "large"
    large.write_bytes(LARGE)
    options = (*version, "-q", "2", "-C", "7", *FORMAT, "-t", f"{base}/+/x")
    with subscriber(broker.address, base, *options) as reader:
        for qos in "012":
            small = (*version, "-q", qos, "-t", f"{base}/{qos}/x")
            succeed(pub(broker.address, *small, "-m", "small"))
            succeed(pub(broker.address, *small, "-f", str(large)))
        printed = reader.finish().decode().splitlines()
    lengths = (len("small"), len(LARGE))
    assert printed == [f"{base}/{qos}/x {qos} 0 {size}" for qos in "012" for size in lengths]


@pytest.mark.parametrize("qos", ["0", "1", "2"])
def test_each_line_of_the_input_is_a_message(broker: BrokerProcess, base: str, qos: str):
    lines = b"".join(b"line %d\n" % number for number in range(100))
    options = ("-q", "2", "-C", "101", "-t", f"{base}/lines/#")
    with subscriber(broker.address, base, *options) as reader:
        published = pub(broker.address, "-q", qos, "-t", f"{base}/lines/x", "-l", given=lines)
        succeed(published)
        assert reader.finish() == lines


def test_the_whole_input_is_a_retained_message(
    broker: BrokerProcess, base: str, version: tuple[str, str]
):
    here = (*version, "-q", "1", "-t", f"{base}/kept")
    succeed(pub(broker.address, *here, "-r", "-s", given=LARGE))
    later = (*version, "-q", "1", "-t", f"{base}/#", "-C", "1", "-W", "5")
    assert succeed(sub(broker.address, *later, "-N")) == LARGE
    succeed(pub(broker.address, *here, "-r", "-n"))


def test_a_removed_retained_message_is_gone(broker: BrokerProcess, base: str):
    succeed(pub(broker.address, "-q", "1", "-r", "-t", f"{base}/kept", "-m", "old"))
    removes = ("--remove-retained", "--retained-only", "-t", f"{base}/#", *FORMAT, "-W", "1")
    answer = sub(broker.address, *removes)
    assert answer.stdout.decode() == f"{base}/kept 0 1 3\n"
    with subscriber(broker.address, base, "-C", "2", "-t", f"{base}/#") as reader:
        succeed(pub(broker.address, "-q", "1", "-t", f"{base}/kept", "-m", "live"))
        assert reader.finish() == b"live\n"


def test_messages_are_queued_for_a_client_that_is_away(
    broker: BrokerProcess, base: str, version: tuple[str, str]
):
    session = (*version, "-i", base, "-q", "2", "-t", f"{base}/+")
    succeed(sub(broker.address, *session, "-c", "-E"))
    for qos in "12":
        succeed(pub(broker.address, *version, "-q", qos, "-t", f"{base}/{qos}", "-m", "hi"))
    printed = succeed(sub(broker.address, *session, "-c", "-C", "2", "-W", "5", *FORMAT))
    assert printed.decode().splitlines() == [f"{base}/1 1 0 2", f"{base}/2 2 0 2"]
    succeed(sub(broker.address, *session, "-c", "-E"))
    succeed(sub(broker.address, *session, "-E"))  # without -c: the session is cleared


def test_the_will_of_a_killed_client_arrives(
    broker: BrokerProcess, base: str, version: tuple[str, str]
):
    options = (*version, "-q", "2", "-C", "2", *FORMAT, "-t", f"{base}/will")
    will = ("--will-topic", f"{base}/will", "--will-payload", "killed", "--will-qos", "1")
    with subscriber(broker.address, base, *options) as reader:
        with subscriber(broker.address, f"{base}x", *version, *will) as mortal:
            mortal.process.kill()
        assert reader.finish().decode() == f"{base}/will 1 0 6\n"


@pytest.mark.config("mqtt_versions 3")
@pytest.mark.ours("the peer speaks version 5")
@pytest.mark.parametrize("version", [*VERSIONS, "mqttv5"])
def test_only_version_5_is_refused(broker: BrokerProcess, base: str, version: str):
    answer = pub(broker.address, "-V", version, "-t", base, "-m", "x", "-q", "1")
    assert (answer.returncode == 0) is (version != "mqttv5")
    assert answer.stderr.startswith(b"Error: ") is (version == "mqttv5")


@pytest.mark.config("mqtt_versions 3")
@pytest.mark.ours("the peer speaks version 5")
def test_a_subscriber_of_version_5_is_refused(broker: BrokerProcess, base: str):
    """mosquitto_sub retries until -W ends it."""
    answer = sub(broker.address, "-V", "mqttv5", "-t", base, "-E", "-W", "1")
    assert answer.returncode != 0
    assert answer.stdout == b""


@pytest.mark.parametrize("version", VERSIONS)
def test_versions_get_each_others_messages(broker: BrokerProcess, base: str, version: str):
    newer, older = ("-V", "mqttv5"), ("-V", version)
    for reading, writing in ((newer, older), (older, newer)):
        options = (*reading, "-q", "1", "-C", "2", *FORMAT, "-t", f"{base}/x")
        with subscriber(broker.address, base, *options) as reader:
            succeed(pub(broker.address, *writing, "-q", "1", "-t", f"{base}/x", "-m", "hi"))
            assert reader.finish().decode() == f"{base}/x 1 0 2\n"
