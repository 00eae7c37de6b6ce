# beside.py - an application of the board's own, in app.py beside main.py: it is loaded before the
# broker's tables are made, started before the first turn, and has its part in each turn.
# docs/embed.md is its contract.
#
# start(broker) sets hooks, subscribes, publishes. What it returns decides what follows: nothing,
# a function that is called between two turns, or a coroutine, that of `async def start(broker)`
# too, which is a task of asyncio. What it raises ends the start as whatever else does. Has its
# part in the broker's turn; loaded only where there is an app.py, by starts.py. Of a stack of
# 8 KB, as an RP2040 has it, one call more is all that there is room for. Allocates.
import sys

from slotmq_run import boot, starts

_WAIT_MS = 50  # of a turn, before the function is called again
_TASK_MS = 5  # the same, before tasks go on


def prepare():
    """boot.run() will run the application beside the broker. Safe: no new start would mend it."""
    if "" not in sys.path:
        sys.path.insert(0, "")  # the folder it runs in
    try:
        app = __import__("app")
    except (ImportError, SyntaxError) as error:
        raise starts.Safe("app.py: %r" % error)
    if not hasattr(app, "start"):
        raise starts.Safe("app.py has no start(broker)")

    class Board(_Board):
        """The firmware's, of which the application is a part."""

        def __init__(self, *facts):
            super().__init__(*facts)
            setattr(self, "clock", Beside(app.start, self.clock))  # noqa: B010 - its place

    setattr(boot, "Board", Board)  # noqa: B010 - a class is no variable


_Board = boot.Board


class Beside:
    """In the place of the firmware's clock, if it has one, which meets the broker first."""

    def __init__(self, start, clock):
        self._start = start
        self._clock = clock

    def follow(self, broker):
        if self._clock:
            self._clock.follow(broker)
        made = self._start(broker)
        if made is not None:
            broker.turn = _part(broker.turn, made).turn

    def step(self, now):
        if self._clock:
            self._clock.step(now)


def _part(turn, made):
    if hasattr(made, "send"):
        return Tasks(turn, made)
    if callable(made):
        return Steps(turn, made)
    raise TypeError("app.py: start() returns nothing, a function or a coroutine")


class Steps:
    """The application as a function that is called between two turns."""

    def __init__(self, turn, step):
        self._turn = turn
        self._step = step

    def turn(self, _ms):
        self._turn(_WAIT_MS)
        self._step()


class Tasks:
    """The application as a task of asyncio, whose loop goes on after each turn."""

    def __init__(self, turn, coroutine):
        import asyncio

        self._asyncio = asyncio
        self._turn = turn
        self._error = None
        self._loop = asyncio.new_event_loop()
        self._task = self._loop.create_task(self._run(coroutine))

    def turn(self, _ms):
        try:
            self._turn(_TASK_MS)
            self._loop.run_until_complete(self._round())
            if self._error:
                raise self._error
        except BaseException:
            self.end()
            raise

    def end(self):
        """No task goes on; on a computer each hears of it."""
        if hasattr(self._asyncio, "all_tasks"):
            for task in self._asyncio.all_tasks(self._loop):
                task.cancel()
            self._loop.run_until_complete(self._round())
        self._loop.close()

    async def _round(self):
        # Whoever is due has its turn before this one has its second.
        await self._asyncio.sleep(0)

    async def _run(self, coroutine):
        try:
            await coroutine
        except Exception as error:
            self._error = error  # told by turn()
