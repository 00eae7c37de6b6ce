"""Files of a board, saved in a folder here and written back.

What deploy writes anyway (the code) is left out; an application's own main.py is not. A journal in
raw flash is one file more, for `slotmq inspect`. The folder is for its owner only, since
network.json has the network's password; saved.py owns it.
"""

from collections.abc import Collection
from pathlib import Path

from . import backup_folder, board_files, copying, flash_journal
from .repl import Repl

REGION = "journal-in-flash_journal.bin"
_CODE = (*board_files.OWN, *copying.MARKS, board_files.BOOTS)
_MAINS = (copying.MAIN, copying.OURS)


def save(repl: Repl, folder: Path) -> list[str]:
    """Copy all that the code did not bring; -> the names."""
    backup_folder.check(folder)
    names = [path for path, digest in sorted(repl.hashes().items()) if not _is_ours(path, digest)]
    contents = {name: repl.read(name) for name in names}
    region = flash_journal.read(repl)
    if region is not None and region.strip(b"\xff"):
        contents[REGION] = region
    backup_folder.put(folder, contents)  # now that the board has given all
    return list(contents)


def _is_ours(path: str, digest: str) -> bool:
    return path.startswith(_CODE) or (path in _MAINS and digest in board_files.mains())


def restore(repl: Repl, folder: Path) -> list[str]:
    """Write the files of a backup back; -> the names."""
    contents = backup_folder.contents(folder)
    region = contents.pop(REGION, None)
    if region is not None:  # first, since it may be refused
        flash_journal.write(repl, region)
    for name, content in contents.items():
        repl.write(name, content)
    return list(contents) + [REGION] * (region is not None)


def erase(repl: Repl, board: str, stays: Collection[str] = ()) -> str:
    """Remove every other file, and a journal in raw flash; -> what was there."""
    blocks = flash_journal.erase(repl, board)
    paths = sorted(path for path in repl.hashes() if path not in stays)
    repl.remove(paths)
    journal = f", {blocks} blocks of a journal in raw flash erased" if blocks else ""
    return f"{len(paths)} files removed{journal}"
