"""A board at the other end of a serial line: run code, copy files, follow what it prints.

mpremote does the talking; what it takes as a device (a serial port, or "socket://" and
"rfc2217://" addresses) is taken here. What fails is a ToolError that says what to do.
"""

import io
import time
from binascii import b2a_base64
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stdout
from typing import Any

import serial
from mpremote.transport import TransportError, TransportExecError
from mpremote.transport_serial import SerialTransport
from serial.tools import list_ports

from ..errors import ToolError
from . import listing
from .board_files import NEW

_ATTEMPTS = 3
_TIMEOUT_S = 120  # a board may have much to compile
_BACK_S = 20  # how long a USB port may be away while its board starts
_CHUNK = 1536  # bytes; base64 is a third longer, a text of bytes twice
_QUIET_S = 0.2
_FOLDER = "import os\ntry:\n os.mkdir({path!r})\nexcept OSError: pass"
_GO_ON = b"\r\x03\x02\x04"  # Ctrl-C, Ctrl-B and Ctrl-D: no raw REPL, and a soft reset


def find(device: str | None) -> str:
    """The device, or the only board that is plugged in."""
    if device:
        return device
    there = [port.device for port in list_ports.comports() if port.vid is not None]
    if len(there) == 1:
        return str(there[0])
    if there:
        raise ToolError(f"several boards are plugged in: name one, as in --port {there[0]}")
    raise ToolError(
        "no board is plugged in: use a USB cable that carries data, or name its --port"
    )


class Repl:
    """The board's raw REPL: whatever ran there is stopped, and its heap is fresh."""

    def __init__(self, device: str) -> None:
        self.device = device
        self._is_busy = False
        self._transport = _open(device)
        try:
            self._enter()
        except KeyboardInterrupt:
            self._transport.serial.write(_GO_ON)
            raise

    def close(self) -> None:
        self._transport.close()

    def __enter__(self) -> "Repl":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def run(self, code: str, again: bool = False) -> str:
        """What the code prints; ToolError with the last line of its traceback.

        again: it changes nothing, and is run anew on a board that starts anew meanwhile."""
        try:
            output, errors = self._tried(
                lambda: self._transport.exec_raw(code, timeout=_TIMEOUT_S),
                _ATTEMPTS if again else 1,
            )
        except (TransportError, serial.SerialException, OSError) as error:
            raise ToolError(f"{self.device}: the board went away ({error})") from None
        if errors:
            last = errors.decode(errors="replace").strip().splitlines()[-1]
            raise ToolError(f"the board: {last}")
        text: str = output.decode(errors="replace")
        return text

    def value(self, code: str) -> Any:
        """What the code prints, as a Python value, whatever else prints on this line."""
        found = listing.literals(self.run(code, again=True))
        if not found:
            raise self._unreadable()
        return found[-1]

    def hashes(self) -> dict[str, str]:
        """SHA-256 of every file on the board, by its path."""
        return self._by_path(listing.HASHES)

    def sizes(self) -> dict[str, int]:
        """The bytes of every file on the board, by its path."""
        return self._by_path(listing.SIZES)

    def _by_path(self, code: str) -> dict[str, Any]:
        for _ in range(_ATTEMPTS):
            rows = listing.rows(self.run(code, again=True))
            if rows is not None:
                return rows
        raise self._unreadable()

    def _unreadable(self) -> ToolError:
        return ToolError(
            f"{self.device}: the board's answer cannot be read, since something else prints on"
            " this line: try again"
        )

    def write(self, path: str, content: bytes) -> None:
        """Write a file, and the folders it lies in; no part of it is shown in an error.

        Whatever cuts it off, the old one is there, or the new one as a whole. A board that
        stops answering, or starts anew, is stopped again and gets the file from its beginning."""
        for left in reversed(range(_ATTEMPTS)):
            try:
                self._write(path, content)
                return
            except TransportExecError as error:
                reason = (error.error_output.strip().splitlines() or ["failed"])[-1]
                raise ToolError(
                    f"{path}: cannot be written ({reason}): `slotmq deploy --erase` makes room"
                ) from None
            except (TransportError, serial.SerialException, OSError) as error:
                if not left:
                    raise ToolError(
                        f"{path}: the board went away while it was written ({error})"
                    ) from None
                self._again()
                self._enter()

    def _write(self, path: str, content: bytes) -> None:
        folders = path.split("/")[1:-1]
        for depth in range(len(folders)):
            self._transport.exec(_FOLDER.format(path="/" + "/".join(folders[: depth + 1])))
        pieces = [content[at : at + _CHUNK] for at in range(0, len(content), _CHUNK)]
        steps = [f"w(d({b2a_base64(piece, newline=False)!r}))" for piece in pieces]
        begin = (
            f"from binascii import a2b_base64 as d\nf = open({path + NEW!r}, 'wb')\nw = f.write"
        )
        end = f"f.close()\nimport os\nos.rename({path + NEW!r}, {path!r})"
        for step in (begin, *steps, end):
            self._transport.exec(step)

    def read(self, path: str) -> bytes:
        """A file's content."""
        try:
            content: bytes = self._tried(lambda: self._transport.fs_readfile(path), _ATTEMPTS)
        except (OSError, TransportError) as error:
            raise ToolError(f"{path}: cannot be read from the board ({error})") from None
        except (ValueError, SyntaxError):
            raise self._unreadable() from None
        return bytes(content)

    def remove(self, paths: list[str]) -> None:
        """Remove files."""
        if paths:
            self.run(f"import os\nfor path in {paths!r}: os.remove(path)")

    def reset(self) -> None:
        """Let it start anew; it is no REPL afterwards, but lines() goes on."""
        try:
            if self._is_busy:  # Ctrl-C came in the midst of something
                self._transport.enter_raw_repl(soft_reset=False)
            self._transport.exec_raw_no_follow("import machine; machine.reset()")
        except (TransportError, serial.SerialException, OSError) as error:
            raise ToolError(f"{self.device}: the board went away ({error})") from None

    def lines(self, seconds: float) -> Iterator[str]:
        """What the board prints, line by line, for so long at most."""
        yield from follow(lambda: self._transport.serial, self._again, seconds)

    def _tried(self, ask: Callable[[], Any], attempts: int) -> Any:
        # As when its watchdog bites, which what ran before may have left awake.
        while True:
            attempts -= 1
            try:
                with self._busy():
                    return ask()
            except TransportExecError:
                raise
            except (TransportError, serial.SerialException, ConnectionError):
                if not attempts:
                    raise
                self._again()
                self._enter()

    @contextmanager
    def _busy(self) -> Iterator[None]:
        self._is_busy = True
        yield
        self._is_busy = False

    def _again(self) -> None:
        # A board with USB of its own takes its port away while it starts.
        self._transport.close()
        self._transport = _open(self.device, _BACK_S)

    def _enter(self) -> None:
        # A board that is just starting may miss the first Ctrl-C.
        for _ in range(_ATTEMPTS):
            try:
                with redirect_stdout(io.StringIO()):
                    self._transport.enter_raw_repl(soft_reset=True)
                return
            except (TransportError, serial.SerialException, OSError) as error:
                reason = error
                time.sleep(1)
        self._transport.close()
        raise ToolError(
            f"{self.device} does not answer as MicroPython does ({reason}): press the board's"
            " reset button and try again, or put MicroPython on it first"
        )


def follow(line: Callable[[], Any], again: Callable[[], None], seconds: float) -> Iterator[str]:
    """Lines that come in on a serial line, which may have to be opened again."""
    deadline = time.monotonic() + seconds
    heard = b""
    while time.monotonic() < deadline:
        try:
            line().timeout = _QUIET_S
            piece = line().read(max(1, line().in_waiting))
        except (serial.SerialException, OSError):
            again()
            continue
        heard += piece
        *whole, heard = heard.split(b"\n")
        for text in whole:
            yield text.decode(errors="replace").rstrip("\r")


class Listener:
    """The serial line alone: whatever runs on the board goes on."""

    def __init__(self, device: str) -> None:
        self.device = device
        try:
            self._line = _listen(device)
        except (serial.SerialException, OSError) as error:
            raise ToolError(_why_not(device, error)) from None

    def close(self) -> None:
        self._line.close()

    def lines(self, seconds: float) -> Iterator[str]:
        """What the board prints, for so long at most; ToolError: it has gone for good."""
        yield from follow(lambda: self._line, self._again, seconds)

    def _again(self) -> None:
        # A board with USB of its own takes its port away while it starts.
        self._line.close()
        deadline = time.monotonic() + _BACK_S
        while True:
            try:
                self._line = _listen(self.device)
                return
            except (serial.SerialException, OSError):
                if time.monotonic() > deadline:
                    raise ToolError(
                        f"{self.device}: the board has gone, and did not come back in {_BACK_S} s"
                    ) from None
            time.sleep(_QUIET_S)


def _listen(device: str) -> Any:
    return serial.serial_for_url(device, baudrate=115200, timeout=_QUIET_S)


def _open(device: str, wait: int = 0) -> Any:
    try:
        with redirect_stdout(io.StringIO()):  # it tells people how long it waits
            return SerialTransport(device, baudrate=115200, wait=wait)
    except (TransportError, serial.SerialException, OSError) as error:
        raise ToolError(_why_not(device, error)) from None


def _why_not(device: str, error: Exception) -> str:
    text = str(error)
    if "ermission" in text:
        return f"{device}: permission denied: `sudo usermod -a -G dialout $USER`, then log in anew"
    if "in use" in text or "busy" in text or "exclusively" in text:
        return f"{device} is in use: close the other program that has it open"
    return f"{device} cannot be opened: is the board plugged in? ({text})"
