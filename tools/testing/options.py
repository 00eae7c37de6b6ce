"""What a test's broker shall be: the arguments of @pytest.mark.mqtt and of Mqtt()."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from importlib import import_module
from pathlib import Path
from typing import Any

from slotmq import Limits, Settings

from .. import boards
from ..errors import ToolError

# Of a broker in a test: enough for most programs, and made in a few milliseconds.
SIZES = {
    "connections": 64,
    "sessions": 128,
    "subscriptions": 1000,
    "nodes": 2000,
    "name_bytes": 65536,
    "levels": 32,
    "topic_bytes": 1024,
    "retained": 500,
    "retained_name_bytes": 32768,
    "messages": 1000,
    "message_bytes": 2 << 20,
    "message_block": 512,
    "deliveries": 2000,
    "inflight": 32,
    "queued": 500,
    "received": 32,
    "max_packet": 131072,
    "tx_bytes": 8192,
    "rx_bytes": 8192,
    "tail_bytes": 512,
    "reassembly": 4,
    "routes": 256,
    "route_topic_bytes": 96,
    "route_entries": 2000,
    "shares": 32,
    "aliases": 8,
    "users": 64,
}
RUNTIMES = ("cpython", "micropython")
_VERSIONS = (3, 5)
_TYPES: dict[str, tuple[Any, str]] = {
    "conf": (str, "a str, lines of a configuration"),
    "users": (Mapping, "{name: password}, both str"),
    "limits": (Mapping, "{name: number}"),
    "board": (str | None, "a str"),
}


class WrongOptions(ValueError):
    """The arguments cannot be used; the text says why."""


@dataclass(frozen=True)
class Options:
    """conf: lines of slotmq.conf. users: name: password. limits: by name. board: a folder of
    boards/, whose limits apply; None: those of SIZES. version: the highest that is served.
    tls: with a certificate that is made for the test."""

    conf: str = ""
    users: Mapping[str, str] = field(default_factory=dict)
    limits: Mapping[str, int] = field(default_factory=dict)
    board: str | None = None
    runtime: str = "cpython"
    version: int = 5
    tls: bool = False

    @classmethod
    def of(cls, **named: Any) -> "Options":
        """The options of these arguments. WrongOptions: one is unknown or cannot be used."""
        known = [one.name for one in fields(cls)]
        for name in named:
            if name not in known:
                raise WrongOptions(f"{name}: expected one of {', '.join(known)}")
        made = cls(**named)
        made._check_types()
        if made.runtime not in RUNTIMES:
            raise WrongOptions(f"runtime: expected {' or '.join(RUNTIMES)}, not {made.runtime!r}")
        if made.version not in _VERSIONS:
            raise WrongOptions(
                f"version: expected 3 (for 3.1 and 3.1.1) or 5, not {made.version!r}"
            )
        if not isinstance(made.tls, bool):
            raise WrongOptions(f"tls: expected True or False, not {made.tls!r}")
        if made.tls and made.runtime != RUNTIMES[0]:
            raise WrongOptions('tls: not with runtime="micropython", which has no TLS here')
        if made.board and made.board not in boards.names():
            raise WrongOptions(f"board: expected one of {', '.join(boards.names())}")
        return made

    def _check_types(self) -> None:
        for name, (kind, expected) in _TYPES.items():
            value = getattr(self, name)
            is_right = isinstance(value, kind)
            if name == "users" and is_right:
                is_right = all(isinstance(one, str) for pair in value.items() for one in pair)
            if not is_right:
                raise WrongOptions(f"{name}: expected {expected}, not {value!r}")

    def configuration(self, folder: Path) -> str:
        """The text of slotmq.conf with everything in it; writes files that it names to folder."""
        lines = [self.conf]
        lines += [f"limit {name} {value}" for name, value in self.limits.items()]
        if self.version != max(_VERSIONS):
            lines.append(f"mqtt_versions {self.version}")
        if self.users:
            from .. import passwd

            for name, password in self.users.items():
                try:
                    passwd.put(folder / "users", name, password)
                except ToolError as error:
                    raise WrongOptions(f"users: {name!r}: {error}") from None
            lines += ["allow_anonymous false", f"password_file {folder / 'users'}"]
        return "\n".join(lines) + "\n"

    def _located(self, text: str) -> str:
        # The lines behind those of conf are the limits
        found = re.match(r"slotmq\.conf:(\d+): limit: ", text)
        at = int(found[1]) - self.conf.count("\n") - 2 if found else -1
        if not found or not 0 <= at < len(self.limits):
            return text
        return f"limits: {list(self.limits)[at]!r}: {text[found.end() :]}"

    def made(self, folder: Path) -> tuple[Limits, Settings, list[str]]:
        """Limits, settings, and warnings. WrongOptions: names the line that is wrong."""
        limits = Limits(**SIZES)
        if self.board:
            limits = import_module(f"slotmq_boards.{self.board}.limits").LIMITS
        text = self.configuration(folder)
        if not text.strip():
            return limits, Settings(), []
        from slotmq.config import mosquitto_conf
        from slotmq.config.settings import ConfError

        path = folder / "slotmq.conf"
        path.write_text(text)
        try:
            settings, limits, _, warnings = mosquitto_conf.load(str(path), limits)
        except (ConfError, ValueError) as error:
            raise WrongOptions(self._located(str(error).replace(f"{folder}/", ""))) from None
        if hasattr(settings, "record"):
            raise WrongOptions("conf: record: expected none: a test's broker does not record")
        if len(settings.listeners) > 1:
            raise WrongOptions("conf: expected at most one listener, whose port is the fixture's")
        return limits, settings, warnings
