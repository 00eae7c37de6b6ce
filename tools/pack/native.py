"""The heap that the native code of .mpy files takes on a board, in bytes.

The unix port maps native code outside of MicroPython's heap, so no measurement on the host
counts it. A board has it in the heap (an ESP32 may have it outside). So it is computed from the
file that mpy-cross compiled for the board's processor: each function rounded up to blocks.
Format: MicroPython's py/persistentcode.c, version 6.
"""

from pathlib import Path

_BLOCK = 16  # bytes; what MicroPython's heap is divided into
_BYTECODE, _NATIVE, _VIPER = 0, 1, 2
# Kinds of constant objects: those without bytes, and those with a zero byte at their end
_BARE = range(5)
_TEXTS = (5, 6)
_TUPLE = 10
WEB = "slotmq.frames_viper"  # loaded only for a listener that speaks WebSocket


class _Reader:
    """A .mpy file from its fifth byte on."""

    def __init__(self, content: bytes) -> None:
        if content[:2] != b"M\x06":
            raise ValueError("no .mpy file of version 6")
        self._content = content
        self._at = 4

    def skip(self, count: int) -> None:
        self._at += count

    def byte(self) -> int:
        self._at += 1
        return self._content[self._at - 1]

    def number(self) -> int:
        """A variable-length integer: seven bits a byte, the highest first."""
        value = 0
        while True:
            byte = self.byte()
            value = value << 7 | byte & 127
            if byte < 128:
                return value

    def at_end(self) -> bool:
        return self._at == len(self._content)


def in_folder(folder: Path) -> dict[str, int]:
    """The heap that native code takes in bytes, for each module that has any ("slotmq.viper")."""
    sizes = {
        ".".join(file.relative_to(folder).with_suffix("").parts): in_file(file)
        for file in sorted(folder.rglob("*.mpy"))
    }
    return {name: size for name, size in sizes.items() if size}


def on_a_board(folder: Path) -> int:
    """Bytes of native code in the folder's modules that a board may load without WebSocket."""
    sizes = in_folder(folder)
    return sum(size for name, size in sizes.items() if name != WEB)


def in_file(file: Path) -> int:
    """The bytes of heap that the file's native functions take. ValueError: no such .mpy file."""
    reader = _Reader(file.read_bytes())
    texts, objects = reader.number(), reader.number()
    for _ in range(texts):
        _skip_text(reader)
    for _ in range(objects):
        _skip_object(reader)
    size = _functions(reader)
    if not reader.at_end():
        raise ValueError(f"{file}: not read to its end")
    return size


def _skip_text(reader: _Reader) -> None:
    length = reader.number()
    if not length & 1:  # else it is a number of a name that every MicroPython has
        reader.skip((length >> 1) + 1)


def _skip_object(reader: _Reader) -> None:
    kind = reader.byte()
    if kind in _BARE:
        return
    length = reader.number()
    if kind == _TUPLE:
        for _ in range(length):
            _skip_object(reader)
    else:
        reader.skip(length + (kind in _TEXTS))


def _functions(reader: _Reader) -> int:
    # The native code of a function and of its inner functions
    head = reader.number()
    kind, has_inner, length = head & 3, head & 4, head >> 3
    reader.skip(length)
    if kind in (_NATIVE, _VIPER):
        reader.number()  # offset of its prelude, or flags
    size = 0 if kind == _BYTECODE else -(-length // _BLOCK) * _BLOCK
    if has_inner:
        size += sum(_functions(reader) for _ in range(reader.number()))
    return size
