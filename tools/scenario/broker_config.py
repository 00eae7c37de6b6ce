"""The Limits and Settings of a scenario's broker: the board's, with those of the file. They are
checked by the reader of slotmq.conf.
"""

import re
import tempfile
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

from slotmq import Limits, Settings
from slotmq.config.mosquitto_conf import FIELDS, load
from slotmq.config.settings import ConfError

from .. import boards
from .model import Clients, Scenario
from .read import BadScenario, unknown_key

# Settings of a process, and those with another key in the scenario
_EXCLUDED = {
    *("listener", "port", "bind_address", "pid_file", "limit", "scram_file", "allow_anonymous"),
    *("acl_file", "password_file"),  # the clients of a scenario have no user names
    *("include_dir", "global_max_connections"),
    *("persistence", "persistence_location", "persistence_file", "persistence_sync"),
    *("log_type", "log_dest", "set_tcp_nodelay", "response_information", "server_reference"),
}
KEYS = [
    name for name in (line.split()[0] for line in FIELDS.splitlines()) if name not in _EXCLUDED
]
_OVERHEAD = 20  # bytes of a PUBLISH besides topic and payload
_ERROR = re.compile(r".*?:(\d+): ([\w.]+): (.*)")


def make(scenario: Scenario) -> tuple[Limits, Settings]:
    """Limits and Settings. BadScenario: they are wrong, or the clients contradict them."""
    preset: Limits = import_module(f"slotmq_boards.{scenario.board}.limits").LIMITS
    wrong: list[str] = []
    lines = [*_limits(scenario.limits, wrong), *_settings(scenario.settings, wrong)]
    if scenario.persistence:
        lines.append(("persistence", "persistence true"))
    while True:
        try:
            limits, settings = _load(preset, lines)
            break
        except _BadLines as errors:
            wrong += [f"{lines[at][0]}: {message}" for at, message in errors.found]
            bad = {at for at, _ in errors.found}
            lines = [line for at, line in enumerate(lines) if at not in bad]
    wrong += [*_sockets(scenario, limits), *_impossible(scenario, limits, settings)]
    if wrong:
        raise BadScenario(wrong)
    return limits, settings


class _BadLines(Exception):
    """found: (index of the line, what is wrong)"""

    def __init__(self, found: list[tuple[int, str]]) -> None:
        super().__init__()
        self.found = found


def _load(preset: Limits, lines: list[tuple[str, str]]) -> tuple[Limits, Settings]:
    with tempfile.TemporaryDirectory(prefix="slotmq-sim-") as folder:
        file = Path(folder) / "conf"
        file.write_text("".join(f"{line}\n" for _, line in lines))
        try:
            settings, limits, *_ = load(str(file), preset)
        except ConfError as error:
            texts = str(error).split("\n")
            raise _BadLines([_bad_line(text.removeprefix(folder)) for text in texts]) from None
    settings.allow_anonymous = True
    return limits, settings


def _bad_line(text: str) -> tuple[int, str]:
    found = _ERROR.fullmatch(text)
    return (max(0, int(found[1]) - 1), found[3]) if found else (0, text)


def _limits(values: dict[str, Any], wrong: list[str]) -> list[tuple[str, str]]:
    found = []
    for name, value in values.items():
        if isinstance(value, bool) or not isinstance(value, int):
            wrong.append(f"limits.{name}: expected a whole number, not {value!r}")
        else:
            found.append((f"limits.{name}", f"limit {name} {value}"))
    return found


def _settings(values: dict[str, Any], wrong: list[str]) -> list[tuple[str, str]]:
    found = []
    for name, value in values.items():
        path = f"settings.{name}"
        if name not in KEYS:
            wrong.append(f"{path}: {unknown_key(name, KEYS)}")
        elif isinstance(value, dict) and name == "when_full":
            found += [
                (f"{path}.{table}", f"{name} {table} {text}") for table, text in value.items()
            ]
        elif isinstance(value, bool | int | str) and "\n" not in str(value):
            text = str(value).lower() if isinstance(value, bool) else str(value)
            found.append((path, f"{name} {text}"))
        else:
            wrong.append(f"{path}: expected true, false, a number or a text, not {value!r}")
    return found


def _impossible(scenario: Scenario, limits: Any, settings: Settings) -> Iterator[str]:
    """Clients and messages that a broker with these limits and settings always refuses."""
    for at, group in enumerate(scenario.clients):
        if group.level > settings.mqtt_versions + 1:
            yield f"clients[{at}].version: settings.mqtt_versions does not allow 5.0"
        if len(group.client_id(group.count)) > limits.client_id_bytes:
            most = limits.client_id_bytes
            yield f"clients[{at}].name: at most {most} bytes, see limit client_id_bytes"
        if group.will and _longest(group.will.topic, group) > limits.topic_bytes:
            most = limits.topic_bytes
            yield f"clients[{at}].will.topic: at most {most} bytes, see limit topic_bytes"
        for index, each in enumerate(group.publish):
            path = f"clients[{at}].publish[{index}]"
            longest = _longest(each.topic, group)
            most = limits.max_packet - longest - _OVERHEAD
            if longest > limits.topic_bytes:
                yield f"{path}.topic: at most {limits.topic_bytes} bytes, see limit topic_bytes"
            elif each.payload > most:
                yield f"{path}.payload: at most {most:,} bytes here, see limit max_packet"


def _longest(topic: str, group: Clients) -> int:
    # in bytes, for the client with the longest number
    return len(topic.replace("{n}", str(group.count)).encode())


def _sockets(scenario: Scenario, limits: Any) -> list[str]:
    """More connections than the board has sockets."""
    board = boards.load(scenario.board)
    most = board.sockets - 1 - board.listener_is_socket
    if limits.connections <= most:
        return []
    has = f"{board.name}, which has {board.sockets} sockets (one is kept in reserve)"
    return [f"limits.connections: at most {most} on {has}"]
