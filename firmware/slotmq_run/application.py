# application.py - the user's application, app.py beside main.py. It is imported before the
# broker's tables are allocated, and its start(broker) is called before the first turn.
# docs/embed.md describes it for users.
#
# start(broker) sets hooks, subscribes and publishes. It returns nothing, or a function, which is
# called after each turn, or a coroutine (so does `async def start(broker)`), which runs as a task
# of asyncio. An exception in it ends the start, as any other.
#
# boot_counter.py loads this module if there is an app.py. It replaces broker.turn, which makes the
# stack one call deeper; the 8 KB stack of an RP2040 has space for no more. Allocates.
import sys

from slotmq_run import boot, boot_counter

_WAIT_MS = 50  # longest turn before the function is called again
_TASK_MS = 5  # longest turn before asyncio runs again


def prepare():
    """Make boot.run() run the application. boot_counter.Safe: app.py is not usable."""
    if "" not in sys.path:
        sys.path.insert(0, "")  # the working directory
    try:
        app = __import__("app")
    except (ImportError, SyntaxError) as error:
        raise boot_counter.Safe("app.py: %r" % error)
    if not hasattr(app, "start"):
        raise boot_counter.Safe("app.py has no start(broker)")

    class Board(_Board):
        """The firmware's Board with the application in the place of its clock."""

        def __init__(self, *facts):
            super().__init__(*facts)
            setattr(self, "clock", Application(app.start, self.clock))  # noqa: B010 - not its type

    setattr(boot, "Board", Board)  # noqa: B010 - a class is no variable


_Board = boot.Board


class Application:
    """Stands in for the firmware's clock, which it calls, and starts the application."""

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
    """The application is a function, called after each turn."""

    def __init__(self, turn, step):
        self._turn = turn
        self._step = step

    def turn(self, _ms):
        self._turn(_WAIT_MS)
        self._step()


class Tasks:
    """The application is a task of asyncio; its loop runs once after each turn."""

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
        """End all tasks; CPython cancels each one first."""
        if hasattr(self._asyncio, "all_tasks"):
            for task in self._asyncio.all_tasks(self._loop):
                task.cancel()
            self._loop.run_until_complete(self._round())
        self._loop.close()

    async def _round(self):
        # All tasks that are due run before this one continues.
        await self._asyncio.sleep(0)

    async def _run(self, coroutine):
        try:
            await coroutine
        except Exception as error:
            self._error = error  # turn() raises it
