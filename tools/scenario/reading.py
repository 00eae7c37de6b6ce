"""Reads a scenario: TOML in, a Scenario out, or a line for each key that is wrong."""

import difflib
import tomllib
from collections.abc import Mapping
from dataclasses import MISSING
from pathlib import Path
from typing import Any, TypeVar

from ..errors import ToolError
from .plan import Clients, Link, Persistence, Publish, Scenario, Will, keys

T = TypeVar("T")


class BadScenario(ToolError):
    """Nothing was simulated: each line names a key and what was expected there."""

    def __init__(self, lines: list[str]) -> None:
        super().__init__("\n".join(lines))
        self.lines = lines


def read(path: Path, **instead: Any) -> Scenario:
    """The scenario of a file, some keys of its first level replaced."""
    try:
        text = path.read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise BadScenario([f"cannot be read: {error}"]) from None
    return read_text(text, **instead)


def read_text(text: str, **instead: Any) -> Scenario:
    """The same of its text."""
    try:
        raw = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise BadScenario([f"no TOML: {error}"]) from None
    reader = _Reader()
    scenario = reader.scenario({**raw, **instead})
    if scenario is None or reader.wrong:
        raise BadScenario(reader.wrong)
    return scenario


class _Reader:
    """Reads all of it and notes what is wrong, so that one run tells everything."""

    def __init__(self) -> None:
        self.wrong: list[str] = []

    def note(self, path: str, told: str) -> None:
        self.wrong.append(f"{path}: {told}")

    def scenario(self, raw: dict[str, Any]) -> Scenario | None:
        values = dict(raw)
        groups = self._tables(values.pop("clients", ()), "clients", self._clients)
        if "clients" in raw and not groups and not self.wrong:
            self.note("clients", "expected at least one group, as [[clients]]")
        values["links"] = self._links(values.pop("links", {}))
        if "persistence" in raw:
            values["persistence"] = self._table(Persistence, raw["persistence"], "persistence")
        if "clients" in raw:
            values["clients"] = groups
        for name in ("limits", "settings"):
            if not isinstance(values.setdefault(name, {}), dict):
                self.note(name, f"expected a table, [{name}]")
        found = self._made(Scenario, values, "")
        if found and not self.wrong:
            self._check_groups(found)
            self._check_power(found)
        return found

    def _links(self, raw: Any) -> dict[str, Link]:
        found = {"lan": Link()}
        if not isinstance(raw, dict):
            self.note("links", "expected tables, as [links.wifi]")
            return found
        for name, values in raw.items():
            link = self._table(Link, values, f"links.{name}")
            if link:
                self._check_link(link, f"links.{name}")
                found[name] = link
        return found

    def _clients(self, raw: Any, path: str) -> Clients | None:
        values = dict(raw) if isinstance(raw, dict) else raw
        if isinstance(values, dict):
            if "publish" in values:
                values["publish"] = self._tables(
                    values["publish"], f"{path}.publish", self._publish
                )
            if "will" in values:
                values["will"] = self._table(Will, values["will"], f"{path}.will")
        return self._table(Clients, values, path)

    def _publish(self, raw: Any, path: str) -> Publish | None:
        found = self._table(Publish, raw, path)
        if found and bool(found.every) == bool(found.rate):
            self.note(path, "expected either every or rate")
            return None
        return found

    # Tables

    def _tables(self, raw: Any, path: str, one: Any) -> tuple[Any, ...]:
        if not isinstance(raw, list | tuple):
            self.note(path, f"expected tables, as [[{path}]] or {path} = [{{ ... }}]")
            return ()
        found = [one(each, f"{path}[{at}]") for at, each in enumerate(raw)]
        return tuple(each for each in found if each is not None)

    def _table(self, cls: type[T], raw: Any, path: str) -> T | None:
        if not isinstance(raw, dict):
            self.note(path, "expected a table")
            return None
        return self._made(cls, raw, f"{path}.")

    def _made(self, cls: type[T], raw: Mapping[str, Any], path: str) -> T | None:
        known = keys(cls)
        before = len(self.wrong)
        meant = set()
        for name in raw:
            if name not in known:
                near = difflib.get_close_matches(name, known, 1)
                meant.update(near)
                self.note(path + name, no_such_key(near))
        values = {}
        for name, each in known.items():
            if name in raw:
                values[name] = self._value(each.metadata["kind"], raw[name], path + name)
            elif each.default is MISSING and name not in meant:
                what = each.metadata["help"].replace("see below", "see `slotmq sim --keys`")
                self.note(path + name, f"is missing: {what}")
        return cls(**values) if len(self.wrong) == before else None

    def _value(self, kind: Any, raw: Any, path: str) -> Any:
        try:
            return kind(raw)
        except ValueError as error:
            self.note(path, f"expected {error}, not {_short(raw)}")
            return None

    # What depends on one another

    def _check_link(self, link: Link, path: str) -> None:
        every = link.outage_every
        if (every or link.outage_first >= 0) and not link.outage_for:
            self.note(f"{path}.outage_for", "is missing: how long an outage lasts")
        if link.outage_for and not every and link.outage_first < 0:
            self.note(f"{path}.outage_every", "is missing, or outage_first")
        if every and link.outage_for * 2 > every:
            self.note(f"{path}.outage_for", "expected at most half of outage_every")

    def _check_power(self, scenario: Scenario) -> None:
        if 0 < scenario.power_cut_every <= scenario.power_off_for:
            self.note("power_off_for", "expected less than power_cut_every")

    def _check_groups(self, scenario: Scenario) -> None:
        names: set[str] = set()
        ids: set[str] = set()
        for at, group in enumerate(scenario.clients):
            path = f"clients[{at}]"
            mine = {group.client_id(number) for number in range(1, group.count + 1)}
            if group.name in names or mine & ids:
                self.note(f"{path}.name", f"a group before has that name, or {min(mine)}")
            names.add(group.name)
            ids |= mine
            if group.link not in scenario.links:
                known = ", ".join(scenario.links)
                self.note(f"{path}.link", f"expected a name in links, {known}, not {group.link!r}")
            self._check_group(group, path)

    def _check_group(self, group: Clients, path: str) -> None:
        if bool(group.online_for) != bool(group.offline_for):
            self.note(f"{path}.online_for", "online_for and offline_for go together")
        if group.sleeps and (group.online_for or not group.publish):
            self.note(f"{path}.sleeps", "expected a group that publishes, without online_for")
        if group.expiry >= 0 and (group.level < 5 or group.clean):
            self.note(f"{path}.expiry", 'is for version "5.0" with clean = false')
        if group.level < 5 and any(text.startswith("$share/") for text in group.subscribe):
            self.note(f"{path}.subscribe", '$share is for version "5.0"')


def no_such_key(near: list[str]) -> str:
    """What to say of a key that is none, and perhaps which one was meant."""
    return "no such key; " + (f"did you mean {near[0]}?" if near else "see slotmq sim --keys")


def _short(raw: Any) -> str:
    text = repr(raw)
    return text if len(text) <= 40 else text[:37] + "..."
