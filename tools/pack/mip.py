"""`slotmq build --mip`: a folder that `mpremote mip install` installs on every board.

Bytecode is the same on all boards. Native code is not, so these modules are copied as source and
the board compiles them; with `--sources` all modules are. The folder has a package.json, and is a
package index in mip's layout as well, where a file's name is its hash.
"""

import hashlib
import json
import shutil
from importlib import metadata
from pathlib import Path

from . import mpy

_NAME = "slotmq"
_HASH = 8  # hex digits of a file's name, as in micropython-lib's index
_FORMAT = 1  # of the index
_VERSION_AT = 1  # offset of the version in a .mpy file


def write(folder: Path, *, sources: bool = False) -> int:
    """Write the files, package.json and the index; -> how many files a board gets."""
    made = mpy.readable() if sources else mpy.portable()
    names = sorted(str(file.relative_to(made)) for file in made.rglob("*.*py"))
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(made / name, folder / name)
    package = {"urls": [[name, name] for name in names], "version": metadata.version("slotmq")}
    (folder / "package.json").write_text(json.dumps(package, indent=2) + "\n")
    _write_index(folder, names)
    return len(names)


def _write_index(folder: Path, names: list[str]) -> None:
    # file/HA/HASH for each file, and package/MPY/NAME/VERSION.json, where MPY is the version of
    # the .mpy files
    hashes = []
    for name in names:
        content = (folder / name).read_bytes()
        digest = hashlib.sha256(content).hexdigest()[:_HASH]
        hashes.append([name, digest])
        file = folder / "file" / digest[:2] / digest
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content)
    compiled = mpy.portable().glob("**/*.mpy")
    kind = next(compiled).read_bytes()[_VERSION_AT]
    version = metadata.version("slotmq")
    found = {"v": _FORMAT, "version": version, "hashes": hashes, "deps": []}
    lists = folder / "package" / str(kind) / _NAME
    lists.mkdir(parents=True, exist_ok=True)
    for each in (version, "latest"):
        (lists / f"{each}.json").write_text(json.dumps(found) + "\n")
