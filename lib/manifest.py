# manifest.py - slotmq frozen into a firmware: `include("lib/manifest.py")` in the board's.
#
# MicroPython's build runs this in the folder that it stands in, and provides package(). It packs
# the modules as `slotmq build` does, with the Python that runs the build (3.11). There is no
# metadata() here: a manifest that includes this one may have its own, of which a build takes one,
# and a version in it would be added to every module that is frozen, each with a name more.
import atexit
import shutil
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path("..").resolve()))  # for tools/pack
from tools.pack import by_address, packed  # noqa: E402

_files = sorted(Path("slotmq").rglob("*.py"))
_folder = Path(tempfile.mkdtemp())
atexit.register(shutil.rmtree, _folder)
(_folder / "slotmq").mkdir()
_texts = {file.as_posix(): file.read_text() for file in _files if not file.match("*_cpython.py")}
for _name, _text in packed(_texts).items():
    (_folder / _name).write_text(by_address(_text))
# Without asserts and numbers of lines, as on a board's file system.
package("slotmq", base_path=str(_folder), opt=3)  # noqa: F821
