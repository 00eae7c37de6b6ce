"""The applications: where each comes from, how it is started, what it is asked and answers."""

import json
import os
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache as once
from pathlib import Path
from typing import Any

from slotmq_tools import cache
from slotmq_tools.errors import ToolError
from slotmq_tools.ports import free_port

from ..peers import node
from .broker import KEPT, Place

HERE = Path(__file__).parent
_HOME_ASSISTANT = "2025.4.4"  # the last one for Python 3.13.0
_FRONTEND = "home-assistant-frontend==20250411.0"  # without it it does not start
_NODE_OF_ZIGBEE2MQTT = 22
_DEVICES = 300  # of the larger house
# An entry of Home Assistant's MQTT integration, and an automation that answers. Its entities come
# by discovery; their states are the retained messages.
_TIME = "2025-01-01T00:00:00+00:00"
_ENTRY: dict[str, Any] = {
    "version": 1,
    "minor_version": 5,
    "key": "core.config_entries",
    "data": {
        "entries": [
            {
                "created_at": _TIME,
                "data": "DATA",
                "disabled_by": None,
                "discovery_keys": {},
                "domain": "mqtt",
                "entry_id": "mqtt",
                "minor_version": 2,
                "modified_at": _TIME,
                "options": {},
                "pref_disable_new_entities": False,
                "pref_disable_polling": False,
                "source": "user",
                "subentries": [],
                "title": "slotmq",
                "unique_id": None,
                "version": 1,
            }
        ]
    },
}
_CONFIG = """\
homeassistant:
  name: home
  country: US
http:
  server_host: 127.0.0.1
  server_port: PORT
logger:
  default: warning
automation:
  - id: answer
    alias: answer
    trigger:
      - platform: mqtt
        topic: app/in
    action:
      - service: mqtt.publish
        data:
          topic: app/out
          qos: 1
          payload: >-
            {{ trigger.payload }} {{ states.sensor | map(attribute='state') | select('is_number')
            | list | count }}
"""
Start = tuple[list[str], dict[str, str]]  # a command line, and its environment


@dataclass(frozen=True)
class Application:
    """One: how it is started there, and its version."""

    name: str
    start: Callable[[Place], Start]
    version: Callable[[], str]
    transports: tuple[str, ...] = ("plain", "tls", "wss")
    request: tuple[str, str] = ("app/in", "round")
    answer: tuple[str, str] = ("app/out", f"round {KEPT}")
    seconds: float = 60


def _environment(**more: str) -> dict[str, str]:
    return {**os.environ, **more}


def _npm_version(folder: Path, name: str) -> str:
    found: dict[str, str] = json.loads((folder / name / "package.json").read_text())
    return found["version"]


def _node_red(place: Place) -> Start:
    packages = node.packages(HERE / "package-nodered.json")
    flow = (HERE / "flow.json").read_text()
    flow = flow.replace("URL", place.url).replace('"CA"', json.dumps(place.words[1]))
    if place.words[1]:
        flow = flow.replace('"usetls": false', '"usetls": true')
    nodes = [each for each in json.loads(flow) if place.words[1] or each["id"] != "tls1"]
    (place.folder / "flow.json").write_text(json.dumps(nodes))
    settings = 'module.exports = {uiPort: 0, uiHost: "127.0.0.1", httpAdminRoot: false};\n'
    (place.folder / "settings.js").write_text(settings)
    command, environment = node.command(
        packages / "node-red/red.js", HERE / "package-nodered.json"
    )
    options = ["-u", str(place.folder), "-s", str(place.folder / "settings.js")]
    return [*command, *options, str(place.folder / "flow.json")], environment


def _zigbee2mqtt(place: Place, devices: int = 30) -> Start:
    names = HERE / "package-zigbee2mqtt.json"
    packages = node.packages(names, _NODE_OF_ZIGBEE2MQTT)
    tls = f"  ca: {place.ca}\n" if place.words[1] else ""
    (place.folder / "configuration.yaml").write_text(
        f"version: 5\nmqtt:\n  server: {place.url}\n{tls}serial:\n  port: /dev/null\n"
        "  adapter: zstack\nhomeassistant:\n  enabled: true\nfrontend:\n  enabled: false\n"
        "onboarding: false\nadvanced:\n  network_key: [1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16]\n"
        "  log_output: [console]\n"
    )
    command, environment = node.command(
        packages / "zigbee2mqtt/index.js", names, _NODE_OF_ZIGBEE2MQTT
    )
    fake = ["--require", str(HERE / "fake_herdsman.cjs")]
    environment |= {
        "ZIGBEE2MQTT_DATA": str(place.folder),
        "Z2M_ONBOARD_NO_SERVER": "1",
        "FAKE_DEVICES": str(devices),
    }
    return [command[0], *fake, *command[1:]], environment


def _zigbee2mqtt_version() -> str:
    folder = node.packages(HERE / "package-zigbee2mqtt.json", _NODE_OF_ZIGBEE2MQTT)
    return _npm_version(folder, "zigbee2mqtt")


@once
def _home_assistant_python() -> Path:
    """An environment with Home Assistant. ToolError: there is no Python 3.13."""

    def fill(target: Path) -> None:
        found = [str(each) for each in Path.home().glob(".pyenv/versions/3.13.*/bin/python3")]
        python = next(iter(found), "") or shutil.which("python3.13")
        if not python:
            raise ToolError("it needs a Python 3.13")
        pip = [str(target / "bin/python3"), "-m", "pip", "install", "--quiet"]
        try:
            subprocess.run([python, "-m", "venv", "--copies", str(target)], check=True)
            names = [f"homeassistant=={_HOME_ASSISTANT}", "paho-mqtt==2.1.0", _FRONTEND]
            subprocess.run([*pip, *names], check=True, capture_output=True)
        except subprocess.CalledProcessError as error:
            raise ToolError(f"it cannot be installed: {error}") from None

    return cache.folder(f"homeassistant-{_HOME_ASSISTANT}", fill) / "bin/python3"


def _home_assistant(place: Place) -> Start:
    store = place.folder / ".storage"
    store.mkdir()
    data = {"broker": "localhost", "port": place.port, "client_id": "ha", "discovery": True}
    if place.transport != "plain":
        data |= {"certificate": (place.certs / "ca.crt").read_text()}
    if place.transport == "wss":
        data |= {"transport": "websockets", "ws_path": "/mqtt"}
    (store / "core.config_entries").write_text(
        json.dumps(_ENTRY).replace('"DATA"', json.dumps(data))
    )
    (place.folder / "configuration.yaml").write_text(_CONFIG.replace("PORT", str(free_port())))
    words = ["-m", "homeassistant", "--config", str(place.folder), "--skip-pip"]
    return [str(_home_assistant_python()), *words], _environment()


_HEALTH = ("zigbee2mqtt/bridge/request/health_check", "{}")

APPLICATIONS = (
    Application(
        "Node-RED",
        _node_red,
        lambda: _npm_version(node.packages(HERE / "package-nodered.json"), "node-red"),
        seconds=120,
    ),
    Application(
        "Zigbee2MQTT",
        _zigbee2mqtt,
        _zigbee2mqtt_version,
        request=_HEALTH,
        answer=("zigbee2mqtt/bridge/response/health_check", '"healthy":true'),
        seconds=120,
    ),
    Application(
        f"Zigbee2MQTT, {_DEVICES} devices",  # bridge/devices has 1.5 MB
        lambda place: _zigbee2mqtt(place, _DEVICES),
        _zigbee2mqtt_version,
        request=_HEALTH,
        answer=("zigbee2mqtt/bridge/devices", f"0x{0x158D0001 + _DEVICES:016x}"),
        seconds=180,
    ),
    Application("Home Assistant", _home_assistant, lambda: _HOME_ASSISTANT, seconds=240),
)
