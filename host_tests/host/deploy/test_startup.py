"""What is said of a network that does not come up, and of a broker that answers, but not as it
was thought: by its hooks, by its limits, or without an end."""

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import pytest
from click.testing import CliRunner

from host_tests.host.deploy.fake_repl import HEADLINE, FakeRepl
from slotmq import Broker, Limits, Settings
from slotmq_tools.cli import main
from slotmq_tools.deploy import board_files, mqtt_client, startup
from slotmq_tools.errors import ToolError
from slotmq_tools.ports import free_port


@contextmanager
def serving(hooks: object = None, **settings: Any) -> Iterator[tuple[str, int]]:
    """The address of a broker that is there meanwhile."""
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


class TestTheNetwork:
    @pytest.mark.parametrize(
        ("link", "advice"),
        [
            ("station", r"check --wifi-ssid and the password"),
            ("access_point", "its own access point does not begin"),
            ("ethernet", "check the cable"),
            ("ppp", "other end of the UART"),
        ],
    )
    def test_each_link_has_its_own_advice(self, link: str, advice: str) -> None:
        board: Any = FakeRepl([HEADLINE])
        network = board_files.Network(link, "home" if "_" in link or link == "station" else "")
        with pytest.raises(ToolError, match=advice) as failed:
            startup.watch(board, network, mqtt_client.Login(), None, print)
        assert ("--wifi-ssid" in str(failed.value)) == (link == "station")


class TestTryingIt:
    @pytest.fixture(autouse=True)
    def soon(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(mqtt_client, "_BEHIND_S", 0.3)

    def test_a_message_comes_back(self) -> None:
        with serving() as address:
            assert "a message came back" in mqtt_client.try_out(address, mqtt_client.Login())

    @pytest.mark.parametrize("settings", [{"max_qos": 0}, {"max_qos": 1}])
    def test_at_the_qos_that_there_is(self, settings: dict[str, int]) -> None:
        """A higher one ends the connection."""
        with serving(**settings) as address:
            assert "a message came back" in mqtt_client.try_out(address, mqtt_client.Login())

    def test_a_hook_that_forbids_to_publish_is_no_network_that_is_down(self) -> None:
        hooks = SimpleNamespace(may_publish=lambda _client, _topic: False)
        with serving(hooks) as address:
            told = mqtt_client.try_out(address, mqtt_client.Login())
        assert told.startswith("it answers, and passes no message to slotmq/deploy on")
        assert "may_publish" in told

    def test_nor_is_one_that_forbids_to_subscribe(self) -> None:
        hooks = SimpleNamespace(may_subscribe=lambda _client, _filter, _qos: False)
        with serving(hooks) as address:
            told = mqtt_client.try_out(address, mqtt_client.Login())
        assert told.startswith("it answers, and no message was tried")
        assert "may_subscribe" in told

    def test_nor_is_a_limit_that_ends_the_connection(self) -> None:
        with (
            serving(max_packet_size=22) as address,
            pytest.raises(ToolError, match="closes the connection of who publishes"),
        ):
            mqtt_client.try_out(address, mqtt_client.Login())


class Clock:
    """Each look at it takes a tenth of a second."""

    def __init__(self) -> None:
        self.now = 0.0

    def monotonic(self) -> float:
        self.now += 0.1
        return self.now


def talking(topics: Callable[[int], str]) -> type:
    """A client to whom a message comes whenever it waits."""

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
    def test_it_ends_where_sys_is_told_every_second(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """There is never a silence, but nothing new either."""
        clock = Clock()
        monkeypatch.setattr(mqtt_client, "time", clock)
        monkeypatch.setattr(mqtt_client, "Client", talking(lambda n: f"$SYS/{n % 40}"))
        found = mqtt_client.system_topics(("board", 1883), mqtt_client.Login())
        assert len(found) == 40
        assert clock.now < 20

    def test_it_ends_where_there_is_ever_more(self, monkeypatch: pytest.MonkeyPatch) -> None:
        clock = Clock()
        monkeypatch.setattr(mqtt_client, "time", clock)
        monkeypatch.setattr(mqtt_client, "Client", talking(lambda n: f"$SYS/{n}"))
        assert mqtt_client.system_topics(("board", 1883), mqtt_client.Login())
        assert clock.now < 40

    def test_each_figure_has_its_limit(self) -> None:
        with serving(sys_interval=1) as address:
            told = CliRunner().invoke(main, ["status", "{}:{}".format(*address)]).output
        rows = dict(line.rsplit("  ", 1) for line in told.splitlines())
        found = {
            topic.strip().removeprefix("$SYS/broker/"): value for topic, value in rows.items()
        }
        assert found["clients/connected"] == "1 of 4"
        assert found["slots/messages/high"].endswith(" of 64")
        assert found["store/messages/bytes"].endswith(" of 12544")
        assert found["slots/messages/refused"] == "0"
        assert not [topic for topic in found if topic.endswith("/limit")]

    def test_no_terminal_obeys_it(self, monkeypatch: pytest.MonkeyPatch) -> None:
        told = {"$SYS/\x1b[31m": "\r\u202e", "$SYS/a": "\n"}
        monkeypatch.setattr(mqtt_client, "system_topics", lambda *_: told)
        done = CliRunner().invoke(main, ["status", "127.0.0.1"])
        assert done.output == "$SYS/\\x1b[31m  \\r\\u202e\n$SYS/a         \\n\n"

    def test_both_reasons_for_a_silence_are_told(self) -> None:
        with (
            serving(sys_interval=0) as address,
            pytest.raises(ToolError, match=r"`sys_interval` is 0.*or lets.*may_subscribe"),
        ):
            mqtt_client.system_topics(address, mqtt_client.Login(), 0.3)

    def test_a_hook_that_forbids_it_is_told(self) -> None:
        hooks = SimpleNamespace(may_subscribe=lambda _client, _filter, _qos: False)
        with serving(hooks) as address:
            told = CliRunner().invoke(main, ["status", "{}:{}".format(*address)])
        assert told.exit_code == 1
        assert "not subscribe to $SYS/#: a hook (`may_subscribe`) forbids it" in told.output
        assert "sys_interval" not in told.output


def test_a_broker_that_is_full_is_told_as_such() -> None:
    with serving(max_connections=1) as address:
        first = mqtt_client.Client(address, mqtt_client.Login())
        with pytest.raises(mqtt_client.Refused, match="all its connections are taken"):
            mqtt_client.Client(address, mqtt_client.Login())
        first.close()


def test_a_packet_does_not_wait_for_the_answer_to_the_one_before_it() -> None:
    with serving() as address:
        client = mqtt_client.Client(address, mqtt_client.Login())
        sock: Any = client._client.socket()
        assert sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
        client.close()


def test_an_application_that_fails_is_named() -> None:
    assert "--app FILE" in startup._why_not('File "app.py", line 1, in <module> ImportError: x')
    assert "app" not in startup._why_not('File "main.py", line 1, in <module>')
