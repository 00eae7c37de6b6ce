"""slotmq.conf for a board: where it comes from, and whether the broker could start with it.

The broker's own parser reads it here as the board will. Nothing that it names is opened or
created on this computer, except for its password_file, its acl_file and the certificates and keys
of its listeners, which are copied to the board with it. The content of these files is never shown.
"""

import io
import os
import re
from collections.abc import Callable, Collection
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from slotmq.app import start
from slotmq.config import mosquitto_conf as parser
from slotmq.config import policies
from slotmq.config.settings import ConfError

from .. import boards, passwd
from ..config.check import preset, together
from ..errors import ToolError
from . import access_files, certificates
from .board_files import CONF
from .mqtt_client import Login
from .options import LOGIN_PASSWORD

_OPEN = b"# No configuration was given: anybody on the network may come in.\n"
_OPEN += b"listener 1883\nallow_anonymous true\n"
_CLOSED = b"# No configuration was given: the users in /users may come in.\n"
_CLOSED += b"listener 1883\npassword_file users\nlimit users 8\n"
# Of a board whose outgoing buffers are too small for a CONNACK of SCRAM. Its heap has no space for
# users and MQTT 5.0 together, either.
_VERSION_3 = b"# With users, this board has no space for MQTT 5.0.\nmqtt_versions 3\n"
_SCRAM_TX_BYTES = 192
# Deploy appends this comment and the lines of _limits_for_one_more().
_ONE_MORE = b"\n# One more, for the program on the board itself\n"
# The same in a file that was read back; an editor may have changed the ends of the lines.
_ONE_MORE_FOUND = re.compile(
    rb"(?:(?:^|\r?\n)" + _ONE_MORE.strip() + rb"(?:\r?\n|$)"
    rb"(?:limit connections (\d+)(?:\r?\n|$)(?:limit sessions \1(?:\r?\n|$))?"
    rb"(?:limit route_entries \1(?:\r?\n|$))?)?)+"
)
_LOOPBACK = ("127.", "::1", "localhost")
_OPEN_WARNING = (
    "--anonymous: every client on the network may connect, on port 1883, and read and write"
    " everything (`--no-config --user NAME` asks for a password instead)"
)
_NO_VERSION_5 = "with users, this board has no space for MQTT 5.0: its configuration turns it off"
_NO_USERS = (
    "{}: password_file {}: {}the board has no {}: --user NAME makes it, with a password in"
    " --password-stdin or ${}; without a configuration, --anonymous lets in everybody instead"
)
_NO_RULES = "{}: acl_file {}: {}the board has no {}: without it the broker would not start"
_NO_CERTIFICATE = "{}: {} {}: {}the board has no {}: without it the broker would not start"
_NO_NAMES = (
    "{}: use_identity_as_username: MicroPython on an RP2040 or RP2350 keeps no certificate of a"
    " client, so nothing tells its name: use a password_file"
)
_NO_LISTENER = (
    "{}: no listener for the network: only programs on the board could connect. Add"
    " `listener 1883`, and `allow_anonymous true` if every client may connect"
)


@dataclass(frozen=True)
class Source:
    """A configuration and where it comes from; by default one that lets in every client."""

    name: str = "no configuration"  # for messages
    text: bytes = _OPEN
    folder: Path | None = None  # of the files that it names; None: they are on the board

    def refused(self, why: object) -> ToolError:
        """The error for a configuration with which the broker could not start."""
        advice = "" if self.folder else " (-c FILE brings another one, --no-config none)"
        between = "\n" if "\n" in str(why) else ": "
        return ToolError(f"{why}{between}the board would not start with it{advice}")


@dataclass(frozen=True)
class Configuration:
    """What the board gets, and the limits and settings that the broker reads from it."""

    text: bytes
    limits: Any
    settings: Any
    effectless: list[str] = field(default_factory=list)  # a text for each line without effect
    files: dict[str, bytes] = field(default_factory=dict)  # those that it names, by path
    made: str = ""  # path of a password_file that deploy has made
    kept: tuple[str, ...] = ()  # paths of such files that the board has and keeps
    rules: bytes = b""  # content of its acl_file
    cafile: str = (
        ""  # ca.crt beside the certificate of the first listener, as `slotmq certs` makes
    )

    def login_for_test(self, login: Login) -> Login | None:
        """How to log in to the first listener; None: that needs a file that is not here."""
        options = self.settings.listeners[0][3] if self.settings.listeners else {}
        if not options.get("certfile"):
            return replace(login, cafile=None)
        cafile = login.cafile or self.cafile
        if options.get("require_certificate") or not cafile:
            return None
        return replace(login, cafile=cafile)

    @property
    def is_open(self) -> bool:
        """Is it --anonymous, which lets in every client?"""
        return _without_one_more(self.text) == _OPEN

    @property
    def warnings(self) -> list[str]:
        """What the user should know about it."""
        if self.is_open:
            return [_OPEN_WARNING]
        listeners = start._listeners(self.settings.listeners, {})
        found = [*self.effectless, *policies.warnings(self.settings, listeners)]
        return found + [_NO_VERSION_5] * (_VERSION_3 in self.text)


def with_users(board: str) -> Source:
    """The configuration of a board that was given none: users may come in."""
    has_5 = preset(board).tx_bytes >= _SCRAM_TX_BYTES
    return Source(text=_CLOSED if has_5 else _CLOSED + _VERSION_3)


def from_file(conf: Path) -> Source:
    """The user's file, without the lines that deploy adds, since it may come from a backup."""
    return Source(str(conf), _without_one_more(conf.read_bytes()), conf.parent)


def from_board(text: bytes) -> Source:
    """The content of the board's slotmq.conf, without the lines that deploy adds."""
    return Source(f"{CONF} of the board", _without_one_more(text))


def _without_one_more(text: bytes) -> bytes:
    # The user's lines before and after stay, and are not joined to one line.
    def between(found: re.Match[bytes]) -> bytes:
        before, after = text[: found.start()], text[found.end() :]
        return b"\n" if before and after and not before.endswith(b"\n") else b""

    return _ONE_MORE_FOUND.sub(between, text)


def make(
    source: Source,
    board: str,
    one_more: bool = False,
    on_board: Collection[str] = (),
    login: Login | None = None,
    fetch: Callable[[str], bytes] | None = None,
) -> Configuration:
    """The configuration as the board gets it. ToolError: the broker would not start with it.

    `one_more`: add a connection for the program on the board. `on_board`: paths of its files.
    `login`: the first user, if its password_file does not exist. `fetch`: reads one of the board's
    files; needed if there may be an `on_board`."""
    limits, settings, warnings = read(source, board)
    if one_more:
        text = source.text + _ONE_MORE + _limits_for_one_more(limits)
        source = Source(source.name, text, source.folder)
        limits, settings, _ = read(source, board)
    _check(source, settings, limits)
    made = Configuration(source.text, limits, settings, warnings)
    if settings.password_file:
        made = _with_users(made, source, on_board, login)
    if settings.acl_file:
        made = _with_rules(made, source, on_board, fetch)
    for *_, options in made.settings.listeners:
        if options.get("certfile"):
            made = _with_certificates(made, source, on_board, options, board)
    return made


def _with_users(
    made: Configuration, source: Source, on_board: Collection[str], login: Login | None
) -> Configuration:
    users = made.settings.password_file
    path, file = _place(source, "password_file", users)
    if file and file.is_file():
        content = access_files.read_users(file, made.limits)
        slow = access_files.slow_users(file, made.limits)
        return replace(made, files={path: content}, effectless=made.effectless + slow)
    if path in on_board:
        return replace(made, kept=(path,))
    if login and login.user and login.password:
        passwd.check(login.user, login.password)
        longest = made.limits.client_id_bytes
        if len(login.user.encode()) > longest:
            raise ToolError(f"--user: at most {longest} bytes on this board")
        line = passwd.line(login.user, login.password, passwd.ITERATIONS, os.urandom(16))
        return replace(made, files={path: line + b"\n"}, made=path)
    raise ToolError(_NO_USERS.format(source.name, users, _not(file), path, LOGIN_PASSWORD))


def _with_rules(
    made: Configuration,
    source: Source,
    on_board: Collection[str],
    fetch: Callable[[str], bytes] | None,
) -> Configuration:
    name = made.settings.acl_file
    path, file = _place(source, "acl_file", name)
    if file and file.is_file():
        rules = access_files.read_rules(file, made.limits)
        return replace(made, files={**made.files, path: rules}, rules=rules)
    if path in on_board and fetch:
        rules = fetch(path)  # the limits may be lower than before
        access_files.check(f"{path} of the board", rules, made.limits)
        return replace(made, kept=(*made.kept, path), rules=rules)
    raise ToolError(_NO_RULES.format(source.name, name, _not(file), path))


def _with_certificates(
    made: Configuration, source: Source, on_board: Collection[str], options: Any, board: str
) -> Configuration:
    if options.get("certificate") and boards.load(board).mcu.startswith("rp2"):
        raise source.refused(_NO_NAMES.format(source.name))
    files, kept, here = dict(made.files), list(made.kept), {}
    for key in certificates.KEYS:
        name = options.get(key)
        if not name:
            continue
        path, file = _place(source, key, name)
        if file and file.is_file():
            files[path] = certificates.on_board(key, file)
            here[key] = file
        elif path in on_board:
            kept.append(path)
        else:
            raise ToolError(_NO_CERTIFICATE.format(source.name, key, name, _not(file), path))
    made = replace(made, files=files, kept=tuple(kept))
    if "certfile" not in here or "keyfile" not in here:
        return made
    more = certificates.check(source.name, options, here)
    cafile = here["certfile"].with_name("ca.crt")
    if options is made.settings.listeners[0][3] and cafile.is_file():
        made = replace(made, cafile=str(cafile))
    return replace(made, effectless=made.effectless + more)


def _not(file: Path | None) -> str:
    return f"{file} does not exist, and " if file else ""


def lacks_users(source: Source, board: str, on_board: Collection[str]) -> bool:
    """Does it name a password_file that exists neither here nor on the board?"""
    users = read(source, board)[1].password_file
    path, file = _place(source, "password_file", users) if users else ("", None)
    return bool(users) and path not in on_board and not (file and file.is_file())


def _place(source: Source, key: str, name: str) -> tuple[str, Path | None]:
    # The path of a file on the board, and the file here.
    file = source.folder / name.lstrip("/") if source.folder else None
    if key in certificates.KEYS and file and not file.is_file():
        file = Path(name)  # as the broker on this computer would find it
    return access_files.path_on_board(source.name, name, key), file


def read(source: Source, board: str) -> tuple[Any, Any, list[str]]:
    """Limits (the board's, as changed by the configuration), Settings, and warnings.

    ToolError: the parser refuses the text."""
    reader: Any = parser.Reader(source.name, preset(board), is_foreign=parser.OF_BOARD)
    reader.folder = _no_folder
    try:
        reader.read(io.BytesIO(source.text))
        settings = reader.finish()
        return reader.limits, settings, reader.warnings
    except (ConfError, ValueError) as error:
        raise source.refused(error) from None


def _no_folder(bounds: Any, value: str) -> None:
    # In place of the function for include_dir.
    raise ValueError("no include_dir here: the board gets this file only; move its lines here")


def _limits_for_one_more(limits: Any) -> bytes:
    # A connection and its session; each of these limits must be at least the one before it.
    text, least = b"", limits.connections + 1
    for name in ("connections", "sessions", "route_entries"):
        if getattr(limits, name) < least:
            text += b"limit %s %d\n" % (name.encode(), least)
        least = max(getattr(limits, name), least)
    return text


def _check(source: Source, settings: Any, limits: Any) -> None:
    # What the parser leaves to the start of the broker, and a listener for the network
    listeners = [host or "" for host, *_ in settings.listeners]
    if all(host.startswith(_LOOPBACK) for host in listeners):
        raise ToolError(_NO_LISTENER.format(source.name))
    try:
        together(settings, limits)
    except ValueError as error:
        raise source.refused(f"{source.name}: {error}") from None
