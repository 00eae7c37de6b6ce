"""Save a board's files in a folder of this computer, write them back, and erase a board.

A backup leaves out the code that deploy writes, but not a main.py of the user. A journal in raw
flash becomes one more file, which `slotmq inspect` reads. network.json contains the network's
password, so only the owner may read the folder (backup_folder.py).
"""

from collections.abc import Collection
from pathlib import Path

from . import backup_folder, board_files, copying, flash_journal
from .repl import Repl

REGION = "journal-in-flash.bin"
_CODE = (*board_files.OWN, *copying.MARKS, board_files.BOOTS)
_MAINS = (board_files.MAIN, copying.MAIN_BESIDE)


def save(repl: Repl, folder: Path) -> list[str]:
    """Copy all files but the code; -> their paths on the board."""
    backup_folder.check(folder)
    paths = [path for path, digest in sorted(repl.hashes().items()) if not is_code(path, digest)]
    contents = {path: repl.read(path) for path in paths}
    region = flash_journal.read(repl)
    if region is not None and region.strip(b"\xff"):
        contents[REGION] = region
    backup_folder.replace(folder, contents)  # only now, when the board has sent everything
    return list(contents)


def is_code(path: str, digest: str) -> bool:
    """Does deploy write this file? `digest` is its SHA-256."""
    return path.startswith(_CODE) or (path in _MAINS and digest in board_files.known_mains())


def restore(repl: Repl, folder: Path) -> list[str]:
    """Write the files of a backup back; -> their paths.

    ToolError: this is no backup, or the board has no region of the journal's size (nothing was
    written); or the board stopped answering (some files were)."""
    contents = backup_folder.contents(folder)
    region = contents.pop(REGION, None)
    if region is not None:  # first, since the board may have a region of another size
        flash_journal.write(repl, region)
    for path, content in contents.items():
        repl.write(path, content)
    return list(contents) + [REGION] * (region is not None)


def erase(repl: Repl, board: str, stays: Collection[str] = ()) -> str:
    """Remove all files but those in `stays`, and a journal in raw flash; -> a report."""
    blocks = flash_journal.erase(repl, board)
    paths = sorted(path for path in repl.hashes() if path not in stays)
    repl.remove(paths)
    journal = f", {blocks} blocks of a journal in raw flash erased" if blocks else ""
    return f"{len(paths)} files removed{journal}"
