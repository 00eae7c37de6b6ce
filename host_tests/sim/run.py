# run.py - one seed from its beginning to its end; also the program that runs seeds on
# MicroPython: python run.py FIRST COUNT [STEPS [CLIENTS]]
#
# Prints a line for each seed: its number, the trace's hash, packets read and written, clients,
# and what was seen; or FAIL with the reason.
from . import ending
from .seen import note_full
from .world import World

STEPS = 100


class Result:
    def __init__(self, seed, steps, only):
        self.seed = seed
        self.steps = steps
        self.only = only
        self.failure = None
        self.hash = ""
        self.packets_in = self.packets_out = self.clients = self.turns = 0
        self.seen = {}


def run(seed, steps=STEPS, only=None, keep_trace=False, where=""):
    """A seed; what failed is in its result and does not raise."""
    result = Result(seed, steps, only)
    world = World(seed, steps, only, keep_trace, where)
    try:
        for _ in range(steps):
            world.step()
        ending.end(world)
    except Exception as error:
        result.failure = f"{type(error).__name__}: {error}"
        result.error = error
    result.world = world
    result.hash = world.trace.shown()
    result.packets_in = world.packets_in
    result.packets_out = world.packets_out
    result.clients = len(world.clients)
    result.turns = world.turns
    result.seen = world.seen.counts
    note_full(world)
    return result


def line(result):
    """A result as the one line that both runtimes print."""
    if result.failure:
        why = result.failure.replace("\n", " ")
        return f"FAIL {result.seed} {why}"
    words = ["seed", result.seed, result.hash, result.packets_in, result.packets_out]
    words += [result.clients, result.turns]
    for name in sorted(result.seen):
        if result.seen[name]:
            word = name.replace(" ", "_")
            words.append(f"{word}={result.seen[name]}")
    return " ".join([str(word) for word in words])
