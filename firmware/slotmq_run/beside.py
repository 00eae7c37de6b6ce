# beside.py - an application of the board's own, in app.py beside main.py: it is loaded, started
# before the first turn, and has its turn with the broker's. docs/embedding.md is its contract.
#
# start(broker) sets hooks, subscribes, publishes. What it returns decides what follows: nothing,
# a function that is called between two turns, or a coroutine, that of `async def start(broker)`
# too, which is a task of asyncio beside the broker's. What it raises ends the start as whatever
# else does. Loaded only where there is an app.py. Allocates.
import sys

from slotmq_run import starts

_TURN_MS = 50  # between two calls of the function
_IDLE_S = 0.005  # between two turns in asyncio


def load(folder):
    """app.py as a Program; Safe: no new start would mend it."""
    if folder not in sys.path:
        sys.path.insert(0, folder)
    try:
        import app
    except (ImportError, SyntaxError) as error:
        raise starts.Safe("app.py: %r" % error)
    if not callable(getattr(app, "start", None)):
        raise starts.Safe("app.py has no start(broker)")
    return Program(app.start)


class Program:
    def __init__(self, start):
        self._start = start
        self._made = None
        self._error = None

    def start(self, broker):
        """The application's own start, before the first turn."""
        self._made = self._start(broker)

    def serve(self, board, broker):
        """Turn the broker, and let the application do its part; False: it has none."""
        if self._made is None:
            return False
        if hasattr(self._made, "send"):
            import asyncio

            asyncio.run(self._tasks(board, broker, asyncio))
        elif callable(self._made):
            while board.turn(broker, _TURN_MS):
                self._made()
        else:
            raise TypeError("app.py: start() returns nothing, a function or a coroutine")
        return True

    async def _tasks(self, board, broker, asyncio):
        task = asyncio.create_task(self._run())
        try:
            while board.turn(broker, 0):
                if self._error:
                    raise self._error
                await asyncio.sleep(_IDLE_S)
        finally:
            task.cancel()

    async def _run(self):
        try:
            await self._made
        except Exception as error:
            self._error = error  # ends the broker's turns too
