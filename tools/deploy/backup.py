"""Files of a board, saved in a folder here and written back.

What deploy writes anyway (the code) is left out. The folder is for its owner only,
since network.json has the network's password.
"""

from pathlib import Path

from ..errors import ToolError
from . import payload
from .repl import Repl

_CODE = (*payload.OWN, "/main.py", payload.BOOTS)


def save(repl: Repl, folder: Path) -> list[str]:
    """Copy all that the code did not bring; -> the names."""
    folder.mkdir(parents=True, exist_ok=True)
    folder.chmod(0o700)
    names = [path for path in sorted(repl.hashes()) if not path.startswith(_CODE)]
    for name in names:
        target = folder / name.lstrip("/")
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(repl.read(name))
        target.chmod(0o600)
    return names


def restore(repl: Repl, folder: Path) -> list[str]:
    """Write the folder's files back; -> the names."""
    files = sorted(file for file in folder.rglob("*") if file.is_file())
    if not files:
        raise ToolError(f"{folder} has no files to restore")
    names = [f"/{file.relative_to(folder)}" for file in files]
    for name, file in zip(names, files, strict=True):
        repl.write(name, file.read_bytes())
    return names


def erase(repl: Repl) -> int:
    """Remove every file; -> how many there were."""
    paths = sorted(repl.hashes())
    repl.remove(paths)
    return len(paths)
