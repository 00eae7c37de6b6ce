"""A test's broker with TLS: its throw-away certificate. Faults over it are in test_faults.py."""

import socket
import ssl
import subprocess
import sys
from pathlib import Path

import pytest

from slotmq_tools.testing.mqtt import Mqtt

from .conftest import connected

pytestmark = pytest.mark.mqtt(tls=True)


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
