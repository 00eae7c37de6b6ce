"""What a test can let go wrong, as its clients see it."""

import os
import signal
import time

import pytest

from host_tests.broker.wire import codec
from host_tests.broker.wire.client import Client
from host_tests.broker.wire.codec import Will
from host_tests.broker.wire5 import client as client5
from host_tests.broker.wire5 import codec as codec5
from slotmq_tools.testing import network
from slotmq_tools.testing.mqtt import Mqtt, NotRunning

from .conftest import connected

WILL = Will("state", b"gone")
_TLS = pytest.param("tls", marks=pytest.mark.mqtt(tls=True))
EACH_WAY = pytest.mark.parametrize("_over", ["tcp", _TLS])


@EACH_WAY
def test_disconnect_publishes_the_will(mqtt: Mqtt, _over: str) -> None:
    """[MQTT-3.1.2-8]"""
    client = connected(mqtt, "sensor-1", will=WILL)
    mqtt.disconnect("sensor-1")
    client.expect_closed()
    assert mqtt.wait_for("state").client == "sensor-1"
    assert mqtt.clients == []


def test_a_fault_for_an_unknown_client_names_those_that_are_there(mqtt: Mqtt) -> None:
    client = connected(mqtt, "sensor-1")
    with pytest.raises(AssertionError, match="no client 'sensor-2' is connected, only: sensor-1"):
        mqtt.disconnect("sensor-2")
    client.disconnect()


def test_a_fault_beside_a_takeover_is_for_the_new_connection(
    mqtt: Mqtt, monkeypatch: pytest.MonkeyPatch
) -> None:
    inner = network.Line._close

    def close_slowly(line: network.Line) -> None:
        time.sleep(0.05)
        inner(line)

    monkeypatch.setattr(network.Line, "_close", close_slowly)  # before it notes the lines
    old = connected(mqtt, "sensor-1")
    new = connected(mqtt, "sensor-1")
    mqtt.disconnect("sensor-1")
    new.expect_closed()
    old.expect_closed()


def test_a_fault_waits_for_a_client_that_connects(mqtt: Mqtt) -> None:
    for n in range(20):
        client = Client((mqtt.host, mqtt.port))
        client.send(codec.connect(f"sensor-{n}"))
        mqtt.disconnect(f"sensor-{n}")
        client.sock.close()


def test_refuse(mqtt: Mqtt) -> None:
    mqtt.refuse("sensor-1", 5, times=2)
    other = connected(mqtt, "sensor-2")
    for _ in range(2):
        Client((mqtt.host, mqtt.port)).expect_refused(codec.connect("sensor-1"), 5)
    connected(mqtt, "sensor-1").disconnect()
    other.disconnect()


def test_refuse_lets_others_be_asked_for_a_password() -> None:
    with Mqtt(users={"ada": "lovelace"}) as mqtt:
        mqtt.refuse("sensor-1", 3)
        Client((mqtt.host, mqtt.port)).expect_refused(codec.connect("sensor-2"), 5)
        packet = codec.connect("sensor-1", username="ada", password=b"lovelace")
        Client((mqtt.host, mqtt.port)).expect_refused(packet, 3)
        connected(mqtt, "sensor-1", username="ada", password=b"lovelace").disconnect()


@pytest.mark.parametrize("code", [0, 6, 2.5, "5"])
def test_refuse_takes_codes_of_connack_only(mqtt: Mqtt, code: int) -> None:
    with pytest.raises((TypeError, ValueError), match="code: expected"):
        mqtt.refuse("sensor-1", code)


def test_drop_loses_the_next_messages(mqtt: Mqtt) -> None:
    client = connected(mqtt, "sensor-1")
    mqtt.drop("room/#", next=2)
    for payload in (b"1", b"2", b"3"):
        client.send(codec.publish("room/1", payload, 1, int(payload)))
    client.publish("door", b"open", 0)  # a PING behind it
    assert [one.payload for one in mqtt.messages("room/1")] == [b"3"]
    client.expect_accepted(3, 1)  # and no acknowledgement of those before
    assert mqtt.packets[-1] == "sensor-1 <- PUBLISH" or "(dropped)" in "\n".join(mqtt.packets)
    client.disconnect()


@pytest.mark.parametrize("number", [0, -1])
def test_drop_and_refuse_take_numbers_from_1(mqtt: Mqtt, number: int) -> None:
    with pytest.raises(ValueError, match="next: expected at least 1"):
        mqtt.drop("a", next=number)
    with pytest.raises(ValueError, match="times: expected at least 1"):
        mqtt.refuse("a", times=number)


@EACH_WAY
def test_delay(mqtt: Mqtt, _over: str) -> None:
    client = connected(mqtt, "sensor-1")
    mqtt.delay("300ms")
    began = time.monotonic()
    client.ping()
    assert time.monotonic() - began >= 0.3
    mqtt.delay(0)
    client.ping()
    client.disconnect()


def test_delay_keeps_the_order(mqtt: Mqtt) -> None:
    client = connected(mqtt, "panel")
    client.subscribe("n", qos=0)
    mqtt.delay("100ms")
    for n in range(20):
        mqtt.publish("n", str(n))
        if n == 10:
            mqtt.delay("1ms")
    assert [int(client.next().payload) for _ in range(20)] == list(range(20))
    client.disconnect()


@pytest.mark.parametrize("wrong", ["soon", "5 h", "-1s", "..s", -1])
def test_delay_says_what_it_expects(mqtt: Mqtt, wrong: str) -> None:
    with pytest.raises(ValueError, match='expected "200ms"'):
        mqtt.delay(wrong)


@EACH_WAY
def test_cut_loses_connections_and_refuses_new_ones(mqtt: Mqtt, _over: str) -> None:
    client = connected(mqtt, "sensor-1", will=WILL)
    with mqtt.cut():
        client.expect_closed()
        with pytest.raises((AssertionError, OSError)):
            connected(mqtt, "sensor-1")
        assert mqtt.clients == []
    connected(mqtt, "sensor-1").disconnect()
    assert mqtt.wait_for("state")


def test_a_cut_that_is_refused_leaves_the_network_whole(mqtt: Mqtt) -> None:
    mqtt.power_cut()
    with pytest.raises(NotRunning, match=r"restart\(\) starts it"), mqtt.cut():
        pass
    mqtt.restart()
    connected(mqtt, "sensor-1").disconnect()


def test_restart_helps_after_a_callback_has_raised(mqtt: Mqtt) -> None:
    mqtt.broker.subscribe("bad", lambda *_: 1 / 0)
    mqtt.publish("bad")
    with pytest.raises(NotRunning, match="ZeroDivisionError"):
        mqtt.wait_for("lamp", timeout=20)
    mqtt.restart()
    mqtt.publish("lamp")
    assert mqtt.wait_for("lamp")


@EACH_WAY
def test_half_open_is_noticed_by_the_keep_alive_only(mqtt: Mqtt, _over: str) -> None:
    """[MQTT-3.1.2-24]"""
    client = connected(mqtt, "sensor-1", keep_alive=60, will=WILL)
    other = connected(mqtt, "sensor-2", keep_alive=60)
    mqtt.half_open("sensor-1")
    client.send(codec.publish("lost"))
    mqtt.advance(seconds=80)
    assert mqtt.messages() == []
    mqtt.advance(seconds=20)
    assert [one.topic for one in mqtt.messages()] == ["state"]
    assert [one.id for one in mqtt.clients] == ["sensor-2"]
    other.ping()
    other.disconnect()
    client.expect_closed()


def test_a_half_open_client_that_goes_is_not_noticed(mqtt: Mqtt) -> None:
    client = connected(mqtt, "sensor-1")
    mqtt.half_open("sensor-1")
    client.sock.close()
    mqtt.publish("a", "b")
    assert [one.is_connected for one in mqtt.clients] == [True]


@EACH_WAY
@pytest.mark.mqtt(limits={"queued": 5, "inflight": 5, "tx_bytes": 512})
def test_a_slow_reader_loses_only_what_its_limits_do_not_keep(mqtt: Mqtt, _over: str) -> None:
    slow = connected(mqtt, "slow")
    fast = connected(mqtt, "fast")
    for client in (slow, fast):
        client.subscribe("n", qos=0)
    mqtt.stop_reading("slow")
    for n in range(100):
        mqtt.publish("n", str(n))
        fast.expect_publish("n", str(n).encode())
    mqtt.read_again("slow")
    got = [int(one.payload) for one in slow.publishes()]
    assert got == sorted(got) and 0 < len(got) < 100
    slow.disconnect()
    fast.disconnect()


def test_full_tables() -> None:
    with Mqtt(limits={"connections": 1, "sessions": 1}) as mqtt:
        client = connected(mqtt, "first")
        Client((mqtt.host, mqtt.port)).expect_refused(codec.connect("second"), 3)
        client.disconnect()


@EACH_WAY
@pytest.mark.mqtt(conf="persistence true")
def test_a_power_cut_keeps_what_was_acknowledged(mqtt: Mqtt, _over: str) -> None:
    panel = connected(mqtt, "panel", clean=False)
    panel.subscribe("lamp/+", qos=1)
    mqtt.half_open("panel")
    mqtt.publish("lamp/1", "on", 1)
    sensor = connected(mqtt, "sensor-1")
    sensor.publish("room/1", b"21.5", 1, retain=True)
    port = mqtt.port
    mqtt.power_cut()
    sensor.expect_closed()
    with pytest.raises(NotRunning, match=r"restart\(\) starts it"):
        mqtt.publish("a")
    mqtt.restart()
    panel.expect_closed()
    assert mqtt.port == port
    assert mqtt.retained == {"room/1": b"21.5"}
    panel = connected(mqtt, "panel", clean=False)
    assert panel.connack.session_present
    panel.receive("lamp/1", b"on", 1, dup=True)
    panel.disconnect()


def test_without_a_journal_a_power_cut_loses_all(mqtt: Mqtt) -> None:
    mqtt.publish("room/1", "21.5", 1, True)
    mqtt.power_cut()
    mqtt.restart()
    assert mqtt.retained == {}
    assert mqtt.messages("room/1")  # the test remembers


def test_a_power_cut_publishes_no_will(mqtt: Mqtt) -> None:
    client = connected(mqtt, "sensor-1", will=WILL)
    mqtt.power_cut()
    client.expect_closed()
    mqtt.restart()
    assert mqtt.messages() == []


def test_restart_in_order_publishes_wills(mqtt: Mqtt) -> None:
    client = connected(mqtt, "sensor-1", will=WILL)
    mqtt.restart()
    client.expect_closed()
    assert mqtt.messages("state")


def test_advance_ends_messages_sessions_and_waits_of_wills(mqtt: Mqtt) -> None:
    """[MQTT-3.3.2-5], [MQTT-3.1.3-9]"""
    client = client5.Client((mqtt.host, mqtt.port))
    will = Will("state", b"gone", properties={"will_delay": 600})
    packet = codec5.connect("five", clean=True, will=will, session_expiry=3600)
    assert client.connect(packet).code == 0
    client.publish("short", b"x", 1, retain=True, message_expiry=100)
    mqtt.disconnect("five")
    client.sock.close()
    mqtt.advance(seconds=90)
    assert mqtt.retained
    mqtt.advance(seconds=20)
    assert not mqtt.retained
    assert not mqtt.messages("state") and mqtt.clients
    mqtt.advance(minutes=10)
    assert mqtt.messages("state") and mqtt.clients
    mqtt.advance(hours=1)
    assert not mqtt.clients


@pytest.mark.parametrize("days", [0, 251])
def test_advance_has_bounds(mqtt: Mqtt, days: int) -> None:
    with pytest.raises(ValueError, match="250 days"):
        mqtt.advance(days=days)


def test_advance_takes_numbers_that_are_not_negative(mqtt: Mqtt) -> None:
    with pytest.raises(ValueError, match="days: expected at least 0, not -1"):
        mqtt.advance(days=-1)
    with pytest.raises(TypeError, match="hours: expected a number, not '2'"):
        mqtt.advance(hours="2")  # type: ignore[arg-type]


ENDS = ["close", "power_cut", "restart", "advance"]


@pytest.mark.parametrize("name", ENDS)
def test_a_callback_cannot_end_its_broker(mqtt: Mqtt, name: str) -> None:
    said: list[str] = []

    def heard(*_: object) -> None:
        with pytest.raises(RuntimeError) as error:
            getattr(mqtt, name)()
        said.append(str(error.value))

    mqtt.broker.subscribe("a", heard)
    mqtt.publish("a")
    mqtt.publish("b")
    assert mqtt.messages("b")
    assert said == ["close(), power_cut(), restart(), advance(): not in a callback or a hook"]


@pytest.mark.parametrize("where", ["cpython", "micropython"])
def test_a_child_after_fork_leaves_the_broker_to_its_parent(where: str) -> None:
    with Mqtt(conf="persistence true", runtime=where) as mqtt:
        child = os.fork()
        if not child:
            signal.alarm(5)  # ends a child that hangs
            try:
                mqtt.publish("a")
            except NotRunning:
                mqtt.close()
                os._exit(7)
            os._exit(1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
        mqtt.publish("b", "1", retain=True)
        mqtt.wait_for("b", "1")
        if where == "cpython":
            mqtt.restart()
            assert mqtt.retained == {"b": b"1"}


@pytest.mark.parametrize("name", ["stop", "close"])
def test_the_program_cannot_end_the_broker_of_a_test(mqtt: Mqtt, name: str) -> None:
    for is_called in (False, True):
        with pytest.raises(RuntimeError, match=r"ended by mqtt\.close\(\)"):
            end = getattr(mqtt.broker, name)
            mqtt.broker.call(end) if is_called else end()
    connected(mqtt, "sensor-1").disconnect()
    mqtt.restart()
    with pytest.raises(RuntimeError):
        getattr(mqtt.broker, name)()
    connected(mqtt, "sensor-1").disconnect()


def test_a_refusal_outlives_a_restart(mqtt: Mqtt) -> None:
    mqtt.refuse("sensor-1", 5)
    mqtt.power_cut()
    mqtt.restart()
    Client((mqtt.host, mqtt.port)).expect_refused(codec.connect("sensor-1"), 5)
    connected(mqtt, "sensor-1").disconnect()
