"""A test's broker with TLS: its throw-away certificate, and faults of connections over it."""

import socket
import ssl
import subprocess
import sys
import time
from pathlib import Path

import pytest

from host_tests.broker.wire import codec
from host_tests.broker.wire.codec import Will
from slotmq_tools.testing.mqtt import Mqtt

from .clients import connected

pytestmark = pytest.mark.mqtt(tls=True)
WILL = Will("state", b"gone")


def test_messages_pass_and_are_seen(mqtt: Mqtt) -> None:
    panel = connected(mqtt, "panel")
    assert isinstance(panel.sock, ssl.SSLSocket) and panel.sock.version() == "TLSv1.3"
    panel.subscribe("lamp", qos=1)
    mqtt.publish("lamp", b"x" * 50_000, 1)
    panel.receive("lamp", b"x" * 50_000, 1)
    panel.publish("door", b"open", 1)
    assert mqtt.wait_for("door", "open").client == "panel"
    assert "panel <- PUBACK 00 02" in mqtt.packets
    assert mqtt.url == f"mqtts://127.0.0.1:{mqtt.port}"
    panel.disconnect()


def test_a_client_that_does_not_trust_the_certificate(mqtt: Mqtt) -> None:
    with (
        pytest.raises(ssl.SSLCertVerificationError),
        socket.create_connection((mqtt.host, mqtt.port), 8) as sock,
    ):
        ssl.create_default_context().wrap_socket(sock, server_hostname="localhost")
    assert mqtt.clients == []


def test_cut_and_disconnect(mqtt: Mqtt) -> None:
    client = connected(mqtt, "sensor-1", will=WILL)
    mqtt.disconnect("sensor-1")
    client.expect_closed()
    assert mqtt.wait_for("state").client == "sensor-1"
    client = connected(mqtt, "sensor-1")
    with mqtt.cut():
        client.expect_closed()
        with (
            pytest.raises(ConnectionResetError),
            socket.create_connection((mqtt.host, mqtt.port), 8) as sock,
        ):
            sock.recv(1)
    connected(mqtt, "sensor-1").disconnect()


def test_delay_and_half_open(mqtt: Mqtt) -> None:
    client = connected(mqtt, "sensor-1", keep_alive=60, will=WILL)
    mqtt.delay("200ms")
    began = time.monotonic()
    client.ping()
    assert time.monotonic() - began >= 0.2
    mqtt.delay(0)
    mqtt.half_open("sensor-1")
    client.send(codec.publish("lost"))
    mqtt.advance(seconds=100)
    assert [one.topic for one in mqtt.messages()] == ["state"]
    client.expect_closed()


@pytest.mark.mqtt(limits={"queued": 5, "inflight": 5, "tx_bytes": 512})
def test_a_slow_reader(mqtt: Mqtt) -> None:
    slow = connected(mqtt, "slow")
    slow.subscribe("n", qos=0)
    mqtt.stop_reading("slow")
    for n in range(100):
        mqtt.publish("n", str(n))
    mqtt.read_again("slow")
    got = [int(one.payload) for one in slow.publishes()]
    assert got == sorted(got) and 0 < len(got) < 100
    slow.disconnect()


@pytest.mark.mqtt(conf="persistence true")
def test_a_power_cut(mqtt: Mqtt) -> None:
    client = connected(mqtt, "sensor-1")
    client.publish("room/1", b"21.5", 1, retain=True)
    mqtt.power_cut()
    client.expect_closed()
    mqtt.restart()
    assert mqtt.retained == {"room/1": b"21.5"}
    connected(mqtt, "sensor-1").disconnect()


def test_without_the_package_that_makes_certificates(pytester: pytest.Pytester) -> None:
    pytester.makepyfile("""
        import sys

        import pytest

        sys.modules["cryptography"] = None

        @pytest.mark.mqtt(tls=True)
        def test_it(mqtt):
            pass
    """)
    result = pytester.runpytest_subprocess("-p", "no:cacheprovider")
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*mark.mqtt: tls: cryptography is missing; the extra `certs`*"])
    result.stdout.no_fnmatch_line("*Traceback*")


def test_the_certificate_outlives_a_child_after_fork() -> None:
    code = """
import os, sys
from pathlib import Path
from slotmq_tools.testing.mqtt import Mqtt

with Mqtt(tls=True) as mqtt:
    if not os.fork():
        sys.exit(0)
    print(os.wait()[1], Path(mqtt.cafile).exists())
"""
    command = [sys.executable, "-W", "ignore::DeprecationWarning", "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout == "0 True\n"


def test_the_certificate_goes_with_the_process() -> None:
    code = "from slotmq_tools.testing.mqtt import Mqtt; print(Mqtt(tls=True).cafile)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.endswith("ca.crt\n") and not Path(done.stdout.strip()).parent.exists()
