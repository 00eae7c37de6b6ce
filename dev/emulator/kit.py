"""The files of the image's build that frozen.py needs to link images with other frozen modules.

These are all objects and libraries that were linked, the linker's command line, the compiler's
programs, the headers that frozen modules need (as one preprocessed file), and the Python tools
that MicroPython's build runs. Any change of this file causes a rebuild of the image.
"""

import json
import re
import shlex
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

from slotmq_tools.fetch import debian

LINK, HEADER, QSTRS = "link.json", "frozen.h", "genhdr/qstrdefs.preprocessed.h"
FROZEN, SCRIPT = "frozen.o", "--script="
PROGRAMS = {
    "cc1": "usr/lib/gcc/arm-none-eabi/*/cc1.real",
    "as": "usr/bin/arm-none-eabi-as.real",
    "ld": "usr/bin/arm-none-eabi-ld.real",
    "objcopy": "usr/bin/arm-none-eabi-objcopy.real",
}
LIBRARIES, MICROPYTHON, STAND_INS = "libraries", "micropython", "micropython-lib"
_CONTENT = "frozen_content.c"
_PYTHON = ("tools/*.py", "py/makeqstrdata.py", "mpy-cross/mpy_cross/*.py", "extmod/asyncio/*.py",
           "ports/*/modules/*.py", "ports/*/boards/**/manifest.py")  # fmt: skip
_REQUIRED = re.compile(r"""^require\(["']([\w.-]+)["']""", re.MULTILINE)
_DROPPED_WITH_NEXT = ("-plugin", "-o")  # options of the linker that are dropped with their value
_DROPPED = ("-plugin-opt=", "-Map=")
_INCLUDE = re.compile(r"^#include .*\n", re.MULTILINE)

Run = Callable[..., str]


def keep(build: Path, micropython: Path, tools: debian.Unpacked, kit: Path, run: Run) -> None:
    """Copy what is needed of the build into the new folder `kit`. ToolError: a program failed."""
    kit.mkdir()
    _keep_programs(tools, kit, run)
    _keep_link(build, kit)
    run("the kit's objects", tools.root / "usr/bin/arm-none-eabi-strip", "-g",
        *kit.glob("*.o"), *kit.glob("*.a"))  # fmt: skip
    _keep_header(build, kit, run)
    _keep_python(build, micropython, kit)


def without_includes(text: str) -> str:
    """The C source without its includes, which HEADER replaces."""
    return _INCLUDE.sub("", text)


def _keep_programs(tools: debian.Unpacked, kit: Path, run: Run) -> None:
    (kit / LIBRARIES).mkdir()
    for name, pattern in PROGRAMS.items():
        program = next(tools.root.glob(pattern))
        shutil.copy(program, kit / name)
        loader, *options, _ = tools.command("")
        listed = run("the compiler's libraries", loader, *options, "--list", program)
        for library in re.findall(r"=> (/\S+)", listed):
            shutil.copy(library, kit / LIBRARIES)
        shutil.copy(loader, kit / LIBRARIES)


def _keep_link(build: Path, kit: Path) -> None:
    link = shlex.split((build / "CMakeFiles/firmware.dir/link.txt").read_text())
    told = subprocess.run([*link, "-###"], cwd=build, capture_output=True, text=True, check=True)
    line = next(each for each in reversed(told.stderr.splitlines()) if "/collect2 " in each)
    words = shlex.split(line)[1:]
    folders = [build / word[2:] for word in words if word.startswith("-L")]
    for script in build.glob("*.ld"):  # included by the linker script
        shutil.copy(script, kit)
    kept = list(_kept(iter(words), build, folders, kit))
    (kit / LINK).write_text(json.dumps(kept))


def _kept(words: Iterator[str], build: Path, folders: list[Path], kit: Path) -> Iterator[str]:
    # The linker's arguments for the kit's folder; copies the files that they name.
    for number, word in enumerate(words):
        if word in _DROPPED_WITH_NEXT:
            next(words)
        elif word.startswith("-l"):
            library = f"lib{word[2:]}.a"
            shutil.copy(next(f / library for f in folders if (f / library).exists()), kit)
            yield word
        elif word.startswith(SCRIPT):
            shutil.copy(build / word.removeprefix(SCRIPT), kit)
            yield SCRIPT + Path(word).name
        elif word.endswith(f"/{_CONTENT}.o"):
            yield FROZEN
        elif (build / word).is_file():
            name = f"{number:03}-{Path(word).name}"
            shutil.copy(build / word, kit / name)
            yield name
        elif not word.startswith(("-L", *_DROPPED)):
            yield word
    yield "-L."


def _keep_header(build: Path, kit: Path, run: Run) -> None:
    # All headers preprocessed, with the macros that they define
    commands = json.loads((build / "compile_commands.json").read_text())
    command = next(each["command"] for each in commands if each["file"].endswith(_CONTENT))
    words = shlex.split(command)
    words = words[: words.index("-o")]
    source = kit / "includes.c"
    source.write_text("".join(_INCLUDE.findall((build / _CONTENT).read_text())))
    run("the kit's header", *words, "-E", "-dD", "-P", source, "-o", kit / HEADER)


def _keep_python(build: Path, micropython: Path, kit: Path) -> None:
    required = set()
    for pattern in _PYTHON:
        for file in micropython.glob(pattern):
            target = kit / MICROPYTHON / file.relative_to(micropython)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(file, target)
            if file.name == "manifest.py":
                required.update(_REQUIRED.findall(file.read_text()))
    # Debian's sources lack micropython-lib.
    for name in required:
        folder = kit / STAND_INS / "micropython" / name
        folder.mkdir(parents=True)
        (folder / "manifest.py").write_text(f'metadata(description="empty stand-in for {name}")\n')
    (kit / QSTRS).parent.mkdir()
    shutil.copy(build / QSTRS, kit / QSTRS)
