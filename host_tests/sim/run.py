# run.py - run seeds, one after the other; also the program that both runtimes execute:
#
#   run.py FIRST COUNT STEPS [CLIENT,CLIENT...] [littlefs | fat | plain | bridge]
#
# It prints one line for each seed: the seed, the hash of its trace, packets read and written,
# clients, turns and event counts; or FAIL and the reason. `littlefs` puts the journal on
# MicroPython's own littlefs, `fat` on a model of FAT; `plain` is without what CPython has beside
# MicroPython's code; `bridge` has two brokers.
#
# `slotmq` is imported first: on MicroPython's unix port each nested import needs 4 KB of C stack,
# and the broker's own imports are deeply nested.
import gc
import sys

import slotmq  # noqa: F401
from host_tests.sim.bridges.world import Bridged
from host_tests.sim.world import World

STEPS = 100
BRIDGE = "bridge"
# A seed leaves some MB of garbage. MicroPython's heap is small, so it collects after each seed.
_COLLECT_EVERY = 8 if hasattr(gc, "freeze") else 1


class Result:
    def __init__(self, seed):
        self.seed = seed
        self.failure = None
        self.hash = ""
        self.packets_in = self.packets_out = self.clients = self.turns = 0
        self.events = {}


def run(seed, steps=STEPS, only=None, where=""):
    """Run one seed. A failure is returned in the result, not raised."""
    result = Result(seed)
    world = Bridged(seed, steps) if where == BRIDGE else World(seed, steps, only, where)
    try:
        for _ in range(steps):
            world.step()
        world.end()
    except Exception as error:
        result.failure = f"{type(error).__name__}: {error}"
    result.hash = world.trace.shown()
    result.packets_in = world.packets_in
    result.packets_out = world.packets_out
    result.clients = len(world.clients)
    result.turns = world.turns
    result.events = world.events.counts
    world.note()
    return result


def passes(first, count, where=""):
    """Does no seed fail? The first that does ends it."""
    return not any(run(seed, STEPS, None, where).failure for seed in range(first, first + count))


def line(result):
    """A result as the one line that both runtimes print."""
    if result.failure:
        why = result.failure.replace("\n", " ")
        return f"FAIL {result.seed} {why}"
    words = ["seed", result.seed, result.hash, result.packets_in, result.packets_out]
    words += [result.clients, result.turns]
    for name in sorted(result.events):
        if result.events[name]:
            word = name.replace(" ", "_")
            words.append(f"{word}={result.events[name]}")
    return " ".join([str(word) for word in words])


def main(first, count, steps, only="", where=""):
    if hasattr(gc, "freeze"):  # CPython: what is imported now is never collected
        gc.freeze()
        gc.disable()
    chosen = [int(index) for index in only.split(",")] if only else None
    for seed in range(int(first), int(first) + int(count)):
        print(line(run(seed, int(steps), chosen, where)))
        getattr(sys.stdout, "flush", int)()
        if seed % _COLLECT_EVERY == 0:
            gc.collect()


if __name__ == "__main__":
    main(*sys.argv[1:])
