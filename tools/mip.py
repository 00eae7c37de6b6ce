"""`slotmq build --mip`: a folder that `mpremote mip install` takes, for every board.

Bytecode is the same for all of them; native code is not, so it goes as source, and the
board compiles it. package.json lists the files as lib/package.json does the sources.
"""

import json
import shutil
from importlib import metadata
from pathlib import Path

from . import mpy


def write(folder: Path) -> int:
    """Write the files and package.json; -> how many files a board gets."""
    made = mpy.portable()
    names = sorted(str(file.relative_to(made)) for file in made.rglob("*.*py"))
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(made / name, folder / name)
    package = {"urls": [[name, name] for name in names], "version": metadata.version("slotmq")}
    (folder / "package.json").write_text(json.dumps(package, indent=2) + "\n")
    return len(names)
