"""deploy's MQTT client: the test of a broker, and `slotmq status`, which reads $SYS."""

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import pytest
from click.testing import CliRunner

from slotmq import Broker, Limits, Settings
from slotmq_tools.cli import main
from slotmq_tools.deploy import mqtt_client
from slotmq_tools.errors import ToolError
from slotmq_tools.ports import free_port


@contextmanager
def serving(hooks: object = None, **settings: Any) -> Iterator[tuple[str, int]]:
    """The address of a broker that runs in a thread."""
    broker = Broker(Limits(), Settings(**settings))
    if hooks:
        broker.hooks = hooks
    address = "127.0.0.1", free_port()
    broker.listen(*address)
    ended = threading.Event()

    def turn() -> None:
        while not ended.is_set():
            broker.turn(20)

    thread = threading.Thread(target=turn)
    thread.start()
    try:
        yield address
    finally:
        ended.set()
        thread.join()
        broker.stop()
        broker.run()


FORBIDS_SUBSCRIBE = SimpleNamespace(may_subscribe=lambda _client, _filter, _qos: False)
FORBIDS_PUBLISH = SimpleNamespace(may_publish=lambda _client, _topic: False)


class TestTryOut:
    @pytest.fixture(autouse=True)
    def short_timeout(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(mqtt_client, "_AFTER_ACK_S", 0.3)

    @pytest.mark.parametrize("settings", [{}, {"max_qos": 0}, {"max_qos": 1}])
    def test_a_message_comes_back(self, settings: dict[str, int]) -> None:
        """The broker would disconnect a client that publishes with more than max_qos."""
        with serving(**settings) as address:
            assert "came back" in mqtt_client.try_out(address, mqtt_client.Login())

    @pytest.mark.parametrize(
        ("hooks", "name"),
        [(FORBIDS_PUBLISH, "may_publish"), (FORBIDS_SUBSCRIBE, "may_subscribe")],
    )
    def test_a_hook_that_forbids_the_topic_is_reported(self, hooks: object, name: str) -> None:
        with serving(hooks) as address:
            result = mqtt_client.try_out(address, mqtt_client.Login())
        assert result.startswith("it answers") and name in result
        assert "came back" not in result

    def test_a_limit_that_disconnects_the_client_is_an_error(self) -> None:
        with (
            serving(max_packet_size=22) as address,
            pytest.raises(ToolError, match=r"disconnects.*slotmq/deploy"),
        ):
            mqtt_client.try_out(address, mqtt_client.Login())


class Clock:
    """Each call of monotonic() takes a tenth of a second."""

    def __init__(self) -> None:
        self.now = 0.0

    def monotonic(self) -> float:
        self.now += 0.1
        return self.now


def client_of(topics: Callable[[int], str]) -> type:
    """A client that receives its nth message with topics(n) as soon as it waits."""

    class Client:
        def __init__(self, *_: object) -> None:
            self.count = 0

        def subscribe(self, _topic: str) -> None:
            pass

        def wait(self, _kind: str, _seconds: float) -> Any:
            self.count += 1
            return SimpleNamespace(topic=topics(self.count), payload=b"7")

        def close(self) -> None:
            pass

    return Client


class TestStatus:
    @pytest.fixture
    def clock(self, monkeypatch: pytest.MonkeyPatch) -> Clock:
        clock = Clock()
        monkeypatch.setattr(mqtt_client, "time", clock)
        return clock

    def test_it_ends_when_only_known_topics_come(
        self, clock: Clock, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """As with a sys_interval of a second, when there is never a pause."""
        monkeypatch.setattr(mqtt_client, "Client", client_of(lambda n: f"$SYS/{n % 40}"))
        found = mqtt_client.system_topics(("board", 1883), mqtt_client.Login())
        assert len(found) == 40
        assert clock.now < 20

    def test_it_ends_when_new_topics_never_end(
        self, clock: Clock, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(mqtt_client, "Client", client_of(lambda n: f"$SYS/{n}"))
        assert mqtt_client.system_topics(("board", 1883), mqtt_client.Login())
        assert clock.now < 40

    def test_figures_have_their_limits(self) -> None:
        with serving(sys_interval=1) as address:
            output = CliRunner().invoke(main, ["status", "{}:{}".format(*address)]).output
        rows = dict(line.rsplit("  ", 1) for line in output.splitlines())
        found = {
            topic.strip().removeprefix("$SYS/broker/"): value for topic, value in rows.items()
        }
        assert found["clients/connected"] == "1 of 4"
        assert found["slots/messages/high"].endswith(" of 64")
        assert found["store/messages/bytes"].endswith(" of 9856")
        assert found["slots/messages/refused"] == "0"
        assert not [topic for topic in found if topic.endswith("/limit")]

    def test_control_characters_are_escaped(self, monkeypatch: pytest.MonkeyPatch) -> None:
        topics = {"$SYS/\x1b[31m": "\r\u202e", "$SYS/a": "\n"}
        monkeypatch.setattr(mqtt_client, "system_topics", lambda *_: topics)
        done = CliRunner().invoke(main, ["status", "127.0.0.1"])
        assert done.output == "$SYS/\\x1b[31m  \\r\\u202e\n$SYS/a         \\n\n"

    def test_without_an_address_it_is_that_of_this_computer(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def topics(address: tuple[str, int], _: object) -> dict[str, str]:
            return {"$SYS/at": "{}:{}".format(*address)}

        monkeypatch.setattr(mqtt_client, "system_topics", topics)
        assert CliRunner().invoke(main, ["status"]).output == "$SYS/at  127.0.0.1:1883\n"
        over_tls = CliRunner().invoke(main, ["status", "--cafile", __file__])
        assert over_tls.output == "$SYS/at  127.0.0.1:8883\n"

    def test_without_topics_both_possible_reasons_are_named(self) -> None:
        with (
            serving(sys_interval=0) as address,
            pytest.raises(ToolError, match=r"`sys_interval`.*`may_subscribe`"),
        ):
            mqtt_client.system_topics(address, mqtt_client.Login(), 0.3)

    def test_a_refused_subscription_names_the_hook(self) -> None:
        with serving(FORBIDS_SUBSCRIBE) as address:
            done = CliRunner().invoke(main, ["status", "{}:{}".format(*address)])
        assert done.exit_code == 1
        assert "$SYS/#" in done.output and "may_subscribe" in done.output
        assert "sys_interval" not in done.output


def test_a_broker_whose_connections_are_all_in_use_says_so() -> None:
    with serving(max_connections=1) as address:
        first = mqtt_client.Client(address, mqtt_client.Login())
        with pytest.raises(mqtt_client.Refused, match="all its connections"):
            mqtt_client.Client(address, mqtt_client.Login())
        first.close()


def test_nagles_algorithm_is_off() -> None:
    with serving() as address:
        client = mqtt_client.Client(address, mqtt_client.Login())
        sock: Any = client._client.socket()
        assert sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
        client.close()


def test_a_login_that_is_refused_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SLOTMQ_PASSWORD", "sesame")
    listener = socket.create_server(("127.0.0.1", 0))

    def refuse() -> None:
        with listener.accept()[0] as client:
            client.recv(1000)
            client.sendall(b"\x20\x02\x00\x04")

    threading.Thread(target=refuse, daemon=True).start()
    address = "{}:{}".format(*listener.getsockname())
    done = CliRunner().invoke(main, ["status", address, "--user", "alice"])
    assert done.exit_code == 1 and "Bad user name or password" in done.output
    listener.close()
