"""Backup, restore and erase of a journal in raw flash; 32-bit MicroPython runs the code."""

import ast
import json
import os
import random
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from host_tests.broker.unit.journal.media import Ram
from slotmq import Broker, Limits, Settings
from slotmq.journal import restore
from slotmq.journal.medium_flash import FlashMedium
from slotmq_tools import micropython
from slotmq_tools.cli import main
from slotmq_tools.deploy import backup, backup_folder, flash_journal
from slotmq_tools.errors import ToolError
from slotmq_tools.pack import mpy

BOARD = Path(__file__).with_name("repl_micropython.py")
HEAP_KB = 112  # an ESP32's
BLOCK = 4096


class Line:
    """In place of Repl: the files are a dict, code runs on MicroPython."""

    def __init__(self, folder: Path) -> None:
        self.files = {
            "/network.json": b'{"board": "ESP32_GENERIC_C3"}',
            "/lib/slotmq/viper.mpy": b"",
        }
        (folder / "network.json").write_bytes(self.files["/network.json"])
        self.process = subprocess.Popen(
            micropython.command(32, HEAP_KB, BOARD),
            cwd=folder,
            env=micropython.environment(mpy.build_for(micropython.find(32))),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )

    def run(self, code: str) -> str:
        assert self.process.stdin and self.process.stdout
        self.process.stdin.write(b"%d\n%s" % (len(code), code.encode()))
        self.process.stdin.flush()
        output = b""
        while not output.endswith(b"\x04"):
            piece = os.read(self.process.stdout.fileno(), 65536)
            assert piece, output
            output += piece
        return output[:-1].decode()

    def value(self, code: str, _fits: object) -> Any:
        return ast.literal_eval(self.run(code))

    def remove(self, paths: list[str]) -> None:
        for path in paths:
            del self.files[path]

    def hashes(self) -> dict[str, str]:
        return dict.fromkeys(self.files, "")

    def read(self, path: str) -> bytes:
        return self.files[path]

    def write(self, path: str, content: bytes) -> None:
        self.files[path] = content


@pytest.fixture
def line(tmp_path: Path) -> Iterator[Any]:
    made = Line(tmp_path)
    yield made
    assert made.process.stdin and made.process.stdout
    made.process.stdin.close()
    assert made.process.wait(20) == 0
    made.process.stdout.close()


def region_with_journal(blocks: int) -> bytes:
    """A region of so many blocks; its journal has a retained message."""
    chip = Ram(blocks, BLOCK)
    broker = Broker(Limits(), Settings(sys_interval=0))
    journal = restore.restore(broker, FlashMedium(chip, 4 * BLOCK))
    broker.publish("topic", "kept", retain=True)
    assert journal.commit()
    journal.close()
    return bytes(chip.data)


def write_list(folder: Path, *names: str) -> None:
    """Make it the folder of a backup with these files."""
    (folder / backup_folder.LIST).write_text(json.dumps({"files": names}))


def test_inspect_reads_the_copy(line: Any, tmp_path: Path) -> None:
    region = tmp_path / "region.bin"
    region.write_bytes(region_with_journal(12))
    folder = tmp_path / "saved"
    assert backup.save(line, folder) == ["/network.json", backup.REGION]
    copy = folder / backup.REGION
    assert copy.read_bytes() == region.read_bytes()
    assert copy.stat().st_mode & 0o77 == 0
    done = CliRunner().invoke(main, ["inspect", str(copy)])
    assert done.exit_code == 0 and "topic" in done.output and "kept" in done.output


def test_restore_overwrites_the_region(line: Any, tmp_path: Path) -> None:
    folder = tmp_path / "saved"
    folder.mkdir()
    content = region_with_journal(8)
    (folder / backup.REGION).write_bytes(content)
    (folder / "slotmq.conf").write_bytes(b"listener 1883\n")
    write_list(folder, "/slotmq.conf", backup.REGION)
    region = tmp_path / "region.bin"
    region.write_bytes(random.Random(6).randbytes(8 * BLOCK))
    assert backup.restore(line, folder) == ["/slotmq.conf", backup.REGION]
    assert region.read_bytes() == content
    assert line.files["/slotmq.conf"] == b"listener 1883\n"


def test_a_board_without_region_or_journal(line: Any, tmp_path: Path) -> None:
    folder = tmp_path / "saved"
    folder.mkdir()
    (folder / backup.REGION).write_bytes(b"of an earlier backup")
    write_list(folder, backup.REGION)
    assert backup.save(line, folder) == ["/network.json"]
    assert not (folder / backup.REGION).exists()
    (tmp_path / "region.bin").write_bytes(b"\xff" * 4 * BLOCK)  # an erased region
    assert backup.save(line, folder) == ["/network.json"]


def test_a_region_of_another_size_is_refused_before_anything_is_written(
    line: Any, tmp_path: Path
) -> None:
    region = tmp_path / "region.bin"
    region.write_bytes(bytes(4 * BLOCK))
    folder = tmp_path / "saved"
    folder.mkdir()
    (folder / backup.REGION).write_bytes(region_with_journal(8))
    (folder / "slotmq.conf").write_bytes(b"x")
    write_list(folder, "/slotmq.conf", backup.REGION)
    with pytest.raises(ToolError, match=r"32,768 .*16,384"):
        backup.restore(line, folder)
    assert region.read_bytes() == bytes(4 * BLOCK)
    assert "/slotmq.conf" not in line.files


def test_erase_leaves_blocks_that_are_not_a_journals(line: Any, tmp_path: Path) -> None:
    region = tmp_path / "region.bin"
    foreign = bytes(range(256)) * (BLOCK // 256)
    content = region_with_journal(8)
    region.write_bytes(content + foreign)
    line.files.clear()  # without network.json; the option --board says where the region is
    used = sum(content[at : at + 7] == b"slotmqJ" for at in range(0, len(content), BLOCK))
    assert used
    report = backup.erase(line, "ESP32_GENERIC_C3")
    assert report.startswith("0 files ") and f" {used} blocks of a journal" in report
    assert region.read_bytes() == b"\xff" * 8 * BLOCK + foreign
    assert "journal" not in backup.erase(line, "ESP32_GENERIC_C3")


def test_erase_without_a_region(line: Any) -> None:
    assert backup.erase(line, "ESP32_GENERIC_C3").startswith("2 files ")
    assert line.files == {}


@pytest.mark.parametrize("printed", ["AAAA\n", "\n\n\nAAA\n", "\n\n\nI (12) wifi: up\n"])
def test_an_incomplete_block_is_an_error(printed: str) -> None:
    class Half:
        def value(self, _code: str, _fits: object) -> tuple[int, int]:
            return 1, BLOCK

        def run(self, _code: str) -> str:
            return printed

    with pytest.raises(ToolError, match="block 0 "):
        flash_journal.read(Half())  # type: ignore[arg-type]
