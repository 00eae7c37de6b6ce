# runner.py - the program that runs seeds, on both runtimes, and prints a line for each:
# runner.py FIRST COUNT STEPS [CLIENT,CLIENT...] [littlefs | fat]
#
# littlefs: the journal of each seed is a file on MicroPython's own littlefs; fat: on a
# model of FAT.
#
# The broker comes first: an import under way takes 4 KB of C stack on MicroPython's unix
# port, and the broker's own go deep enough.
import gc
import sys

import slotmq  # noqa: F401
from host_tests.sim.run import line, run

# A seed leaves some MB behind: on a small heap the collector is asked after each one.
_COLLECT = 8 if hasattr(gc, "freeze") else 1


def main(first, count, steps, only="", where=""):
    if hasattr(gc, "freeze"):  # what is there now stays: CPython need not look at it again
        gc.freeze()
        gc.disable()
    chosen = [int(index) for index in only.split(",")] if only else None
    for seed in range(int(first), int(first) + int(count)):
        print(line(run(seed, int(steps), chosen, False, where)))
        getattr(sys.stdout, "flush", int)()
        if seed % _COLLECT == 0:
            gc.collect()


main(*sys.argv[1:])
