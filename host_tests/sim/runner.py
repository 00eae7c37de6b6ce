# runner.py - the program that runs seeds, on both runtimes, and prints a line for each:
# runner.py FIRST COUNT STEPS [CLIENT,CLIENT...]
#
# The broker comes first: an import under way takes 4 KB of C stack on MicroPython's unix
# port, and the broker's own go deep enough.
import gc
import sys

import slotmq  # noqa: F401
from host_tests.sim.run import line, run


def main(first, count, steps, only=""):
    chosen = [int(index) for index in only.split(",")] if only else None
    for seed in range(int(first), int(first) + int(count)):
        print(line(run(seed, int(steps), chosen)))
        getattr(sys.stdout, "flush", int)()
        gc.collect()


main(*sys.argv[1:])
