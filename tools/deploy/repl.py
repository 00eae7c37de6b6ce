"""A board on a serial line: run code, copy files, read what it prints.

mpremote implements the protocol. A device is whatever mpremote accepts: a serial port, or a
"socket://" or "rfc2217://" address. Each failure is a ToolError that says what to do.
"""

import io
import struct
import time
from binascii import b2a_base64
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stdout
from typing import Any

import serial
from mpremote.transport import TransportError, TransportExecError
from mpremote.transport_serial import SerialTransport
from serial.tools import list_ports

from ..errors import ToolError, shown
from . import listing
from .board_files import NEW

_ATTEMPTS = 3
_TIMEOUT_S = 120  # of a command; a board may have much to compile
_REOPEN_S = 20  # how long a USB port may be missing while its board starts
_MOST, _MOST_S = 256 << 20, 3600  # bytes and seconds of a command
_LINE = 65536  # bytes; what goes on without an end is shown in such pieces
_CHUNK = 1536  # bytes; they are sent in base64, a third longer
_POLL_S = 0.2
_MAKE_FOLDER = "import os\ntry:\n os.mkdir({path!r})\nexcept OSError: pass"
_SOFT_RESET = b"\r\x03\x02\x04"  # Ctrl-C, Ctrl-B (leave the raw REPL), Ctrl-D


def find(device: str | None) -> str:
    """The device; None: the only board on USB. ToolError: there is none, or several."""
    if device:
        return device
    boards = [port.device for port in list_ports.comports() if port.vid is not None]
    if len(boards) == 1:
        return str(boards[0])
    if boards:
        raise ToolError(f"several boards are plugged in: name one, such as --port {boards[0]}")
    raise ToolError("no board is plugged in: use a USB cable with data wires, or name its --port")


class Repl:
    """The board's raw REPL, after Ctrl-C and a soft reset: no program runs, the heap is empty.

    ToolError: the port cannot be opened, or no MicroPython answers."""

    def __init__(self, device: str) -> None:
        self.device = device
        self._is_busy = False
        self._transport = _open_transport(device)
        try:
            self._enter()
        except KeyboardInterrupt:
            self._transport.serial.write(_SOFT_RESET)
            raise

    def close(self) -> None:
        self._transport.close()

    def __enter__(self) -> "Repl":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def run(self, code: str, retry: bool = False) -> str:
        """Run code; -> what it prints. ToolError: an exception, named by its last line.

        `retry`: run it again if the board resets meanwhile; for code that changes nothing."""
        try:
            output, errors = self._with_retries(
                lambda: self._transport.exec_raw(code, timeout=_TIMEOUT_S),
                _ATTEMPTS if retry else 1,
            )
        except (TransportError, serial.SerialException, OSError) as error:
            raise ToolError(
                f"{self.device}: the board stopped answering ({_last(error)})"
            ) from None
        if errors:
            raise ToolError(f"the board: {_last(errors.decode(errors='replace'))}")
        text: str = output.decode(errors="replace")
        return text

    def value(self, code: str, fits: Callable[[Any], bool] = lambda _: True) -> Any:
        """Run code that changes nothing; -> the last Python literal that it prints. ToolError:
        there is none, or it does not fit."""
        found = listing.literals(self.run(code, retry=True))
        if not (found and fits(found[-1])):
            raise self._unreadable()
        return found[-1]

    def hashes(self) -> dict[str, str]:
        """SHA-256 (hexadecimal) of every file on the board, by path."""
        return self._list_files(listing.HASHES)

    def sizes(self) -> dict[str, int]:
        """Size in bytes of every file on the board, by path."""
        return self._list_files(listing.SIZES)

    def _list_files(self, code: str) -> dict[str, Any]:
        for _ in range(_ATTEMPTS):
            found = listing.by_path(self.run(code, retry=True))
            if found is not None:
                return found
        raise self._unreadable()

    def _unreadable(self) -> ToolError:
        return ToolError(
            f"{self.device}: the board's answer is unreadable, since other output is mixed into"
            " it: try again"
        )

    def write(self, path: str, content: bytes) -> None:
        """Write a file, and make its folders. Errors show no content.

        If it is interrupted, the board has the old file or the complete new one. If the board
        stops answering or resets, the file is sent again from its beginning."""
        for left in reversed(range(_ATTEMPTS)):
            try:
                self._write(path, content)
                return
            except TransportExecError as error:
                raise ToolError(
                    f"{path}: cannot be written ({_last(error.error_output)}):"
                    " `slotmq deploy --erase` frees space"
                ) from None
            except (TransportError, serial.SerialException, OSError) as error:
                if not left:
                    raise ToolError(
                        f"{path}: the board stopped answering during the write ({_last(error)})"
                    ) from None
                self._reopen()
                self._enter()

    def _write(self, path: str, content: bytes) -> None:
        folders = path.split("/")[1:-1]
        for depth in range(len(folders)):
            self._transport.exec(_MAKE_FOLDER.format(path="/" + "/".join(folders[: depth + 1])))
        pieces = [content[at : at + _CHUNK] for at in range(0, len(content), _CHUNK)]
        steps = [f"w(d({b2a_base64(piece, newline=False)!r}))" for piece in pieces]
        begin = (
            f"from binascii import a2b_base64 as d\nf = open({path + NEW!r}, 'wb')\nw = f.write"
        )
        end = f"f.close()\nimport os\nos.rename({path + NEW!r}, {path!r})"
        for step in (begin, *steps, end):
            self._transport.exec(step)

    def read(self, path: str) -> bytes:
        """The content of a file. ToolError: the board cannot read it."""
        try:
            content: bytes = self._with_retries(
                lambda: self._transport.fs_readfile(path), _ATTEMPTS
            )
        except (OSError, TransportError) as error:
            raise ToolError(f"{path}: cannot be read from the board ({_last(error)})") from None
        except listing.NO_LITERAL:
            raise self._unreadable() from None
        return bytes(content)

    def remove(self, paths: list[str]) -> None:
        """Remove files. ToolError: one of them does not exist."""
        if paths:
            self.run(f"import os\nfor path in {paths!r}: os.remove(path)")

    def reset(self) -> None:
        """Reset the board. Afterwards only lines() may be called, which prints its start."""
        try:
            if self._is_busy:  # Ctrl-C on this computer interrupted a command
                self._transport.enter_raw_repl(soft_reset=False)
            self._transport.exec_raw_no_follow("import machine; machine.reset()")
        except (TransportError, serial.SerialException, OSError) as error:
            raise ToolError(
                f"{self.device}: the board stopped answering ({_last(error)})"
            ) from None

    def lines(self, seconds: float) -> Iterator[str]:
        """The lines that the board prints, for at most so many seconds."""
        yield from read_lines(lambda: self._transport.serial, self._reopen, seconds)

    def _with_retries(self, command: Callable[[], Any], attempts: int) -> Any:
        # The watchdog may reset the board, if the program that was stopped had started it.
        while True:
            attempts -= 1
            try:
                with self._busy():
                    return command()
            except TransportExecError:
                raise
            except (TransportError, serial.SerialException, ConnectionError):
                if not attempts:
                    raise
                self._reopen()
                self._enter()
            except struct.error:  # mpremote: half of an answer
                raise self._unreadable() from None

    @contextmanager
    def _busy(self) -> Iterator[None]:
        self._is_busy = True
        self._transport.serial.left = _MOST
        self._transport.serial.end = time.monotonic() + _MOST_S
        yield
        self._is_busy = False

    def _reopen(self) -> None:
        # The port of a board with native USB disappears while the board starts.
        self._transport.close()
        self._transport = _open_transport(self.device, _REOPEN_S)

    def _enter(self) -> None:
        # A board that is starting may miss the first Ctrl-C.
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
            f"{self.device}: no MicroPython answers ({reason}): press the board's reset button and"
            " try again, or install MicroPython on it first"
        )


def _last(said: object) -> str:
    # The last line of an error, which of a traceback is what went wrong
    return ([line for line in str(said).splitlines() if line.strip()] or ["an error"])[-1]


def read_lines(
    line: Callable[[], Any], reopen: Callable[[], None], seconds: float
) -> Iterator[str]:
    """Lines received for at most so many seconds; `line` returns the port, `reopen` opens it."""
    deadline = time.monotonic() + seconds
    received = b""
    while time.monotonic() < deadline:
        try:
            line().timeout = _POLL_S
            piece = line().read(max(1, line().in_waiting))
        except (serial.SerialException, OSError):
            reopen()
            continue
        received += piece
        *whole, received = received.split(b"\n")
        if len(received) > _LINE:
            whole, received = [*whole, received], b""
        for text in whole:
            yield shown(text.decode(errors="replace").rstrip("\r"))


class Listener:
    """Reads the serial line; the program on the board is not stopped."""

    def __init__(self, device: str) -> None:
        self.device = device
        try:
            self._line = _open_port(device)
        except (serial.SerialException, OSError) as error:
            raise ToolError(_open_error(device, error)) from None

    def close(self) -> None:
        self._line.close()

    def lines(self, seconds: float) -> Iterator[str]:
        """The lines that the board prints, for at most so many seconds.

        ToolError: the port disappeared and did not come back."""
        yield from read_lines(lambda: self._line, self._reopen, seconds)

    def _reopen(self) -> None:
        # The port of a board with native USB disappears while the board starts.
        self._line.close()
        deadline = time.monotonic() + _REOPEN_S
        while True:
            try:
                self._line = _open_port(self.device)
                return
            except (serial.SerialException, OSError):
                if time.monotonic() > deadline:
                    raise ToolError(
                        f"{self.device}: the port disappeared and did not return in {_REOPEN_S} s"
                    ) from None
            time.sleep(_POLL_S)


def _open_port(device: str) -> Any:
    return serial.serial_for_url(device, baudrate=115200, timeout=_POLL_S)


def _open_transport(device: str, wait: int = 0) -> Any:
    try:
        with redirect_stdout(io.StringIO()):  # it prints how long it waits
            made = SerialTransport(device, baudrate=115200, wait=wait)
    except (TransportError, serial.SerialException, OSError) as error:
        raise ToolError(_open_error(device, error)) from None
    made.serial = _Bounded(made.serial)
    return made


class _Bounded:
    """A serial line from which a command reads no more than so many bytes, for so long: a board
    that prints without end is not waited for, nor is one that says half a word."""

    left, end = 0, 0.0

    def __init__(self, line: Any) -> None:
        self.__dict__["_line"] = line
        self._line.timeout = _TIMEOUT_S

    def __getattr__(self, name: str) -> Any:
        return getattr(self._line, name)

    def __setattr__(self, name: str, value: Any) -> None:
        if name in ("left", "end"):
            self.__dict__[name] = value
        else:
            setattr(self._line, name, value)

    def read(self, size: int = 1) -> Any:
        found = self._line.read(size)
        if self.end:
            self.left -= len(found)
            if self.left < 0 or time.monotonic() > self.end:
                raise ToolError("the board prints without end")
        return found


def _open_error(device: str, error: Exception) -> str:
    # Why the port cannot be opened, and what to do
    text = str(error)
    if "ermission" in text:
        return f"{device}: permission denied: `sudo usermod -aG dialout $USER`, then log in again"
    if "in use" in text or "busy" in text or "exclusively" in text:
        return f"{device} is in use: close the other program that uses it"
    return f"{device} cannot be opened: is the board plugged in? ({text})"
