"""The tool that measures the heap: sizes of native code, sums, tables in documents."""

from pathlib import Path

import pytest

from slotmq_dev.heap import table
from slotmq_dev.heap.measure import Measured
from slotmq_tools.pack import mpy, native

PLAIN = """\
TEXTS = ("text", b"bytes", 1.5, 2**40, ("a", ("nested", None)), ...)

def outer(a, b=2):
    def inner():
        return a + b
    return inner
"""
VIPER = """\
import micropython

@micropython.viper
def first(buf) -> int:
    return ptr8(buf)[0]

class Reader:
    @micropython.viper
    def second(self, buf) -> int:
        return ptr8(buf)[1]

@micropython.native
def third(buf):
    return buf[2]
"""


def compiled(folder: Path, text: str, name: str = "slotmq/viper.py", arch: str = "armv6m") -> Path:
    (folder / "source.py").write_text(text)
    return mpy.compile_file(folder / "source.py", name, folder / "made", arch)


def test_bytecode_has_no_native_code(tmp_path: Path) -> None:
    assert native.in_file(compiled(tmp_path, PLAIN)) == 0


def test_each_native_function_counts_in_blocks(tmp_path: Path) -> None:
    whole = native.in_file(compiled(tmp_path, VIPER))
    one = native.in_file(compiled(tmp_path, VIPER[: VIPER.index("class")]))
    assert 16 <= one < whole
    assert one % 16 == whole % 16 == 0


def test_the_size_is_that_of_the_functions(tmp_path: Path) -> None:
    """Each statement adds the same size, in blocks of 16 bytes."""
    sizes = []
    for count in (0, 8, 16):
        lines = "    p[0] = 1\n" * count
        text = f"@micropython.viper\ndef f(buf):\n    p = ptr8(buf)\n{lines}"
        sizes.append(native.in_file(compiled(tmp_path, text)))
    assert sizes[1] - sizes[0] == pytest.approx(sizes[2] - sizes[1], abs=16)
    assert sizes[1] - sizes[0] >= 8 * 2  # an instruction of a Cortex-M0+ has 2 bytes


def test_modules_are_named_as_they_are_imported(tmp_path: Path) -> None:
    compiled(tmp_path, VIPER)
    compiled(tmp_path, PLAIN, "slotmq/loop.py")
    assert list(native.in_folder(tmp_path / "made")) == ["slotmq.viper"]


@pytest.mark.parametrize("content", [b"", b"M\x05\x00\x1f\x00\x00", b"import slotmq\n"])
def test_a_file_of_another_kind_is_refused(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "x.mpy").write_bytes(content)
    with pytest.raises(ValueError, match="version 6"):
        native.in_file(tmp_path / "x.mpy")


def test_a_file_with_trailing_bytes_is_refused(tmp_path: Path) -> None:
    file = compiled(tmp_path, VIPER)
    file.write_bytes(file.read_bytes() + b"\0")
    with pytest.raises(ValueError, match="to its end"):
        native.in_file(file)


# Tables

CLAIMED = {
    "connections": 1000,
    "reassembly": 500,
    "receive buffer": 60,
    "sessions": 80,
    "subscriptions": 10,
    "nodes": 20,
    "retained": 30,
    "messages": 40,
    "deliveries": 50,
    "routes": 70,
    "work buffer": 90,
}
TABLES = {
    "Connections": 1600,
    "Sessions": 88,
    "Subscriptions": 101,
    "Retained": 31,
    "Messages": 41,
    "Deliveries": 51,
    "Broker": 2112,
}
FOUND = Measured(
    board="RPI_PICO_W",
    heap=163840,
    claimed=CLAIMED,
    files={"slotmq.hot": 4000, "slotmq.core": 7000},
    native={"slotmq.hot": 3000},
    modules={"slotmq.fast": 4100, "slotmq.loop": 7200},
    native_modules={"slotmq.fast": 2900},
    borrowed={"slotmq.conf": 5000},
    left={"slotmq.conf": 300},
    tables=TABLES,
    offline=32,
    client=1048,
    free=45000,
)


def test_the_sums() -> None:
    assert (FOUND.bytecode, FOUND.code) == (11300, 14300)
    assert (FOUND.claim, FOUND.all_tables) == (1950, 2112)
    # a slot of the preset: client id of 64 bytes and 32 QoS 2 ids; 640 bytes of buffer
    assert 32 + 64 + 64 < FOUND.whole_session < 32 + 256
    assert 1048 + 640 < FOUND.whole_client - FOUND.whole_session < 1048 + 900


def test_the_last_row_has_the_rest() -> None:
    rows = {name: (claimed, measured) for name, claimed, measured in FOUND.table_rows()}
    assert rows["connections + reassembly"] == (1500, 1600)
    assert rows["receive buffer + work buffer"] == (150, 200)
    assert sum(claimed for claimed, _ in rows.values()) == FOUND.claim
    assert sum(measured for _, measured in rows.values()) == FOUND.all_tables


def test_the_text_has_every_row() -> None:
    lines = [" ".join(line.split()) for line in table.text(FOUND)]
    for line in (
        "RPI_PICO_W, bytes of a heap of 163,840",
        "slotmq.fast 4,100 2,900",
        "slotmq.loop 7,200",
        "slotmq.hot 4,000 3,000",
        "slotmq.core 7,000",
        "slotmq.conf (5,000 while borrowed) 300",
        "code 11,300 3,000",
        "connections + reassembly 1,500 1,600",
        "tables 1,950 2,112",
        "free while 4 clients are connected 45,000",
    ):
        assert line in lines


def test_the_numbers_of_a_table() -> None:
    numbers = table.numbers(table.markdown([FOUND]))
    assert numbers["heap of the board", "RPI_PICO_W"] == 163840
    assert numbers["tables", "RPI_PICO_W"] == 2112
    assert len(numbers) == 7
