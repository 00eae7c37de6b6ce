"""Files of a board, saved in a folder here and written back.

What deploy writes anyway (the code) is left out. A journal in raw flash is one file more, for
`slotmq inspect`. The folder is for its owner only, since network.json has the network's password.
"""

from pathlib import Path

from ..errors import ToolError
from . import flash, payload
from .repl import Repl

REGION = "journal-in-flash.bin"
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
    return names + _save_region(repl, folder / REGION)


def _save_region(repl: Repl, target: Path) -> list[str]:
    content = flash.read(repl)
    if content is None or not content.strip(b"\xff"):
        target.unlink(missing_ok=True)  # of another time
        return []
    target.touch(0o600)
    target.write_bytes(content)
    return [REGION]


def restore(repl: Repl, folder: Path) -> list[str]:
    """Write the folder's files back; -> the names."""
    files = sorted(file for file in folder.rglob("*") if file.is_file())
    if not files:
        raise ToolError(f"{folder} has no files to restore")
    region = folder / REGION
    if region in files:  # first, since it may be refused
        files.remove(region)
        flash.write(repl, region.read_bytes())
    names = [f"/{file.relative_to(folder)}" for file in files]
    for name, file in zip(names, files, strict=True):
        repl.write(name, file.read_bytes())
    return names + [REGION] * region.is_file()


def erase(repl: Repl, board: str) -> str:
    """Remove every file, and a journal in raw flash; -> what was there."""
    blocks = flash.erase(repl, board)
    paths = sorted(repl.hashes())
    repl.remove(paths)
    journal = f", {blocks} blocks of a journal in raw flash erased" if blocks else ""
    return f"{len(paths)} files removed{journal}"
