# beside.py - an application of the board's own, in app.py beside main.py: it is loaded before the
# broker's tables are made, started before the first turn, and has its part in each turn.
# docs/embedding.md is its contract.
#
# start(broker) sets hooks, subscribes, publishes. What it returns decides what follows: nothing,
# a function that is called between two turns, or a coroutine, that of `async def start(broker)`
# too, which is a task of asyncio. What it raises ends the start as whatever else does. Stands
# before boot.py, in the broker's turn; loaded only where there is an app.py. Allocates.
import sys

from slotmq_run import boot, starts

_WAIT_MS = 50  # of a turn, before the function is called again
_TASK_MS = 5  # the same, before tasks go on


def run(folder, turns):
    """boot.run(), the application beside the broker."""
    setattr(boot, "Board", _board(_start(folder)))  # noqa: B010 - a class is no variable
    return boot.run(folder, turns)


def _start(folder):
    # Of app.py; Safe: no new start would mend it.
    if folder not in sys.path:
        sys.path.insert(0, folder)
    try:
        app = __import__("app")
    except (ImportError, SyntaxError) as error:
        raise starts.Safe("app.py: %r" % error)
    if not callable(getattr(app, "start", None)):
        raise starts.Safe("app.py has no start(broker)")
    return app.start


def _board(start):
    # A Board whose broker turns with the application.
    class Board(_Board):
        def serve(self, broker):
            made = start(broker)
            if made is None:
                super().serve(broker)
                return
            part = _part(broker.turn, made)
            broker.turn = part.turn
            try:
                super().serve(broker)
            finally:
                part.end()

    return Board


_Board = boot.Board


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

    def end(self):
        """Nothing is open."""


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
        self._turn(_TASK_MS)
        self._loop.run_until_complete(self._round())
        if self._error:
            raise self._error

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
