"""How much native code a .mpy file has, in the blocks that a board's heap gives out.

The unix port maps native code outside of MicroPython's heap, where no measurement
sees it; a board keeps it in the heap (or, an ESP32, outside of it). So it is
counted from the file, as mpy-cross compiled it for the board's processor.
Format: MicroPython's py/persistentcode.c, version 6.
"""

from pathlib import Path

_BLOCK = 16
_BYTECODE, _NATIVE, _VIPER = 0, 1, 2
# Kinds of constant objects: four that have no bytes, two with a zero behind theirs.
_BARE = range(5)
_TEXTS = (5, 6)
_TUPLE = 10


_OF_COMPUTERS = "record_words_viper"  # it is loaded where the heap is large


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
        """Seven bits to a byte, the highest first."""
        value = 0
        while True:
            byte = self.byte()
            value = value << 7 | byte & 127
            if byte < 128:
                return value

    def at_end(self) -> bool:
        return self._at == len(self._content)


def in_folder(folder: Path) -> dict[str, int]:
    """The modules that have native code, as slotmq.viper, and their bytes of it."""
    sizes = {
        ".".join(file.relative_to(folder).with_suffix("").parts): in_file(file)
        for file in sorted(folder.rglob("*.mpy"))
    }
    return {name: size for name, size in sizes.items() if size}


def on_a_board(folder: Path) -> int:
    """Bytes of native code that a board may have in its heap."""
    sizes = in_folder(folder)
    return sum(size for name, size in sizes.items() if not name.endswith(_OF_COMPUTERS))


def in_file(file: Path) -> int:
    """The bytes of heap that the file's native functions take."""
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
    if not length & 1:  # else it is one of those that every MicroPython has
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
    """The native code of a function and of those in it."""
    head = reader.number()
    kind, has_inner, length = head & 3, head & 4, head >> 3
    reader.skip(length)
    if kind in (_NATIVE, _VIPER):
        reader.number()  # where its prelude is, or its flags
    size = 0 if kind == _BYTECODE else -(-length // _BLOCK) * _BLOCK
    if has_inner:
        size += sum(_functions(reader) for _ in range(reader.number()))
    return size
