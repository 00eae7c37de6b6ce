"""`slotmq run` with the broker of counting.py: counted_run.py ARGUMENTS"""

import functools
import runpy
import sys
from pathlib import Path

from slotmq_tools.cli import main
from slotmq_tools.pack import mpy
from slotmq_tools.run import launcher

COUNTING = Path(__file__).with_name("counting.py")

if "micropython" in sys.argv:
    launcher.boot = lambda heap_kb: COUNTING
    mpy.build_for = functools.partial(mpy.build_for, packed=False)
else:
    runpy.run_path(str(COUNTING))
main(["run", *sys.argv[1:]])
