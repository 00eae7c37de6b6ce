"""The broker of a round, and the client that asks the application."""

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from paho.mqtt.client import Client
from paho.mqtt.enums import CallbackAPIVersion

from slotmq_tools.errors import ToolError
from slotmq_tools.ports import LOOPBACK, free_port

TRANSPORTS = ("plain", "tls", "ws", "wss")
SECURE = ("tls", "wss")
KEPT = 30
_STOPS_IN_S = 20
_EACH_S = 2.0  # between two requests
_STEP_S = 0.2


@dataclass(frozen=True)
class Place:
    """Where an application connects to, and a folder of its own."""

    transport: str
    port: int
    certs: Path
    folder: Path

    @property
    def url(self) -> str:
        """As MQTT.js and others write it."""
        scheme = {"plain": "mqtt", "tls": "mqtts"}.get(self.transport, self.transport)
        return f"{scheme}://localhost:{self.port}" + ("/mqtt" if "w" in scheme else "")

    @property
    def ca(self) -> str:
        """The file of the CA."""
        return str(self.certs / "ca.crt")

    @property
    def words(self) -> list[str]:
        """The arguments of a script: url, CA."""
        return [self.url, self.ca if self.transport in SECURE else ""]


@contextmanager
def broker(runtime: str, folder: Path) -> Iterator[dict[str, int]]:
    """The ports of a running broker, by transport."""
    ports = {transport: free_port() for transport in TRANSPORTS}
    certs = folder / "certs"
    command = [sys.executable, "-m", "slotmq_tools.cli"]
    subprocess.run([*command, "certs", str(certs)], check=True, capture_output=True)
    lines = ["allow_anonymous true"]
    for transport, port in ports.items():
        lines.append(f"listener {port} {LOOPBACK}")
        lines += ["protocol websockets"] if "w" in transport else []
        if transport in SECURE:
            lines += [f"certfile {certs}/server.crt", f"keyfile {certs}/server.key"]
    file = folder / "slotmq.conf"
    file.write_text("".join(f"{line}\n" for line in lines))
    run = [*command, "run", "--runtime", runtime, "-c", str(file)]
    with (folder / "broker.log").open("w") as log:
        process = subprocess.Popen(run, stdout=subprocess.PIPE, stderr=log)
        assert process.stdout
        with process.stdout as output:
            try:
                if not output.readline():
                    raise ToolError(f"the broker does not start: {folder / 'broker.log'}")
                yield ports
            finally:
                process.terminate()
                process.wait(_STOPS_IN_S)


class House:
    """The retained messages, the requests, and the answers."""

    def __init__(self, port: int) -> None:
        self._client = Client(CallbackAPIVersion.VERSION2, "house")
        self.came: list[tuple[str, bytes]] = []
        self._client.on_message = lambda _, __, m: self.came.append((m.topic, bytes(m.payload)))
        self._client.connect(LOOPBACK, port)
        self._client.subscribe([("app/out", 1), ("zigbee2mqtt/#", 1)])
        self._client.loop_start()
        for n in range(KEPT):
            self._client.publish(f"app/kept/{n}", b"%d" % n, 1, retain=True)
            config = {"name": f"s{n}", "unique_id": f"s{n}", "state_topic": f"app/kept/{n}"}
            topic = f"homeassistant/sensor/s{n}/config"
            self._client.publish(topic, json.dumps(config), 1, retain=True).wait_for_publish(20)

    def ask(self, topic: str, payload: str) -> None:
        self._client.publish(topic, payload, 1)

    def close(self) -> None:
        self._client.disconnect()
        self._client.loop_stop()


def round_trip(
    house: House,
    process: "subprocess.Popen[bytes]",
    request: tuple[str, str],
    answer: tuple[str, str],
    seconds: float,
) -> str:
    """Ask until a message of that topic has that text; -> what has come."""
    deadline = time.monotonic() + seconds
    last, asked = "no answer", 0.0
    while time.monotonic() < deadline:
        if time.monotonic() - asked > _EACH_S:
            house.ask(*request)
            asked = time.monotonic()
        for topic, payload in house.came:
            text = payload.decode(errors="replace")
            if topic.startswith(answer[0]):
                last = text[:60]
                if answer[1] in text:
                    return "good"
        if process.poll() is not None:
            return f"failed: it ended with {process.returncode}; {last}"
        house.came.clear()
        time.sleep(_STEP_S)
    return f"failed in {seconds:.0f} s; {last}"
