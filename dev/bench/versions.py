"""The versions of all brokers and runtimes."""

import json
import platform
import subprocess
from importlib import metadata

from slotmq_tools import micropython

from ..peers import mosquitto, node


def all_versions() -> dict[str, str]:
    """Versions by name of the program."""
    return {
        "slotmq": metadata.version("slotmq"),
        "CPython": platform.python_version(),
        "MicroPython": ".".join(map(str, micropython.find(32).version)),
        "mosquitto": mosquitto_version(),
        "aedes": aedes_version(),
        "amqtt": metadata.version("amqtt"),
    }


def mosquitto_version() -> str:
    """The first line of its help is "mosquitto version X"."""
    command = [*mosquitto.broker(), "-h"]
    answer = subprocess.run(command, capture_output=True, text=True, check=False).stdout
    return answer.split()[2]


def aedes_version() -> str:
    package = node.packages() / "aedes/package.json"
    return str(json.loads(package.read_text())["version"])
