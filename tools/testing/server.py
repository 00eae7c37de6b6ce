"""A broker in a thread of this process: its start, its end, its power cuts, and its clock.

The thread makes the turns. What others want of the broker is done between two turns (do()).
"""

import os
import shutil
import tempfile
import threading
from collections import deque
from collections.abc import Callable
from contextlib import nullcontext, suppress
from pathlib import Path
from typing import Any, TypeVar

from slotmq import Broker
from slotmq.config.settings import ConfError
from slotmq.net.timers import tick

from .network import Line, Network, reset
from .options import Options, WrongOptions
from .spy import Spy
from .texts import NotRunning, is_told

__tracebackhide__ = is_told
_T = TypeVar("_T")
_UNUSABLE = (ConfError, OSError, ValueError)
_LOGGED = 63  # platform/log.py's bits: all but debug, since Spy notes the packets
_MOST_LINES = 2000
_MOMENT_S = 1.0
_STEP = 10  # tenths of a second that advance() moves the clock at a time
_STEPS = 10_000  # the most of them
_MEMORY = "/dev/shm"  # Linux: a journal there need not wait for a disk, whose power stays on
_LONGEST = 250 * 86400 * 10  # tenths of a second; the clock's zero moves after 300 days


class _Job:
    def __init__(self, function: Callable[[], Any]) -> None:
        self.function = function
        self.done = threading.Event()
        self.result: Any = None
        self.error: BaseException | None = None

    def make(self) -> None:
        try:
            self.result = self.function()
        except BaseException as error:
            self.error = error
        self.done.set()


def _refuse_to_end() -> None:
    # Else the thread would go on without serving anybody
    raise RuntimeError(
        "stop(), close(): the broker of a test is ended by mqtt.close(), mqtt.restart() or "
        "mqtt.power_cut()"
    )


class Server:
    def __init__(self, options: Options) -> None:
        self.options = options
        self.spy = Spy()
        self.log: deque[str] = deque(maxlen=_MOST_LINES)
        self.failure: BaseException | None = None
        self.broker: Any = None
        self._folder: Path | None = None
        self._jobs: deque[_Job] = deque()
        self._thread: threading.Thread | None = None
        self._is_ending = self._is_told = False
        self._pid = os.getpid()
        self.network = Network(self.spy.sent)
        try:
            self.start()
        except BaseException:
            self.network.shut()
            self._remove_folder()
            raise

    @property
    def folder(self) -> Path:
        if self._folder is None:
            memory = _MEMORY if os.access(_MEMORY, os.W_OK) else None
            self._folder = Path(tempfile.mkdtemp(prefix="slotmq-test-", dir=memory))
        return self._folder

    def start(self) -> None:
        """Start a broker on the same port, with the journal of the one before."""
        needs_folder = self.options.users or self.options.conf or self.options.limits
        folder = self.folder if needs_folder or self.options.version != 5 else Path()
        limits, settings, warnings = self.options.made(folder)
        try:
            broker = Broker(limits, settings)
        except _UNUSABLE as error:  # a file that it names
            raise WrongOptions(f"conf: {error}") from None
        self.broker = broker
        self.failure, self._is_told = None, False
        broker.log = self._log
        broker.log_mask = _LOGGED
        for text in warnings:
            self._log(2, text)
        own = settings.listeners[0] if settings.listeners else (None, 0, 0, None)
        self.spy.watch(broker)
        broker._loop()
        self.network.listen(broker.loop, own[2], self._of_listener(own[3]))
        if settings.persistence:
            self._restore(broker, settings)
        vars(broker).update(stop=_refuse_to_end, close=_refuse_to_end)
        self._is_ending = False
        self._thread = threading.Thread(target=self._serve, name="slotmq", daemon=True)
        self._thread.start()

    def _of_listener(self, own: dict[str, Any] | None) -> dict[str, Any] | None:
        if not self.options.tls or (own and own.get("tls")):  # a certificate of the test's own
            return own
        from .tls import context

        return {**(own or {}), "tls": context()}

    def _restore(self, broker: Broker, settings: Any) -> None:
        if not getattr(settings, "persistence_location", ""):
            settings.persistence_location = str(self.folder)
        try:
            broker.restore()
        except _UNUSABLE as error:
            broker.close()
            raise WrongOptions(f"conf: {error}") from None

    def _serve(self) -> None:
        broker, jobs = self.broker, self._jobs
        try:
            while True:
                while jobs:
                    jobs.popleft().make()
                if self._is_ending:
                    return
                broker.turn(int(self.network.send_late() * 1000))
        except BaseException as error:
            self.failure = error
        finally:
            self._is_ending = True
            while jobs:
                jobs.popleft().make()
            self.spy.changed()  # those that wait see it

    def do(self, function: Callable[[], _T]) -> _T:
        """Call the function between two turns; -> its result, or its exception."""
        if threading.current_thread() is self._thread:
            return function()
        self.check()
        job = _Job(function)
        self._jobs.append(job)
        self.broker.wake()
        while not job.done.wait(0.5):
            self.check()
        if isinstance(job.error, AssertionError | TypeError | ValueError):
            raise job.error.with_traceback(None)  # its text says all
        if job.error:
            raise job.error
        result: _T = job.result
        return result

    def publish(self, topic: str, payload: str | bytes, qos: int, retain: bool) -> bool:
        def publish() -> bool:
            self.spy.publisher, before = "the test", self.spy.publisher
            try:
                done: bool = self.broker.publish(topic, payload, qos, retain)
            finally:
                self.spy.publisher = before
            return done

        return self.do(publish)

    def check_thread(self) -> None:
        """RuntimeError: a callback or a hook would wait for its own end."""
        if threading.current_thread() is self._thread:
            raise RuntimeError(
                "close(), power_cut(), restart(), advance(): not in a callback or a hook"
            )

    def check(self) -> None:
        """NotRunning: nobody would do anything."""
        self.check_failure()
        if self._thread is None:
            raise NotRunning("the broker does not run: restart() starts it")

    def check_failure(self) -> None:
        """NotRunning: the broker's thread has ended with an exception, or is the parent's."""
        if self._pid != os.getpid():
            raise NotRunning("the broker runs in the process that forked this one")
        if self.failure:
            self._is_told = True
            raise NotRunning(f"the broker has failed: {self.failure!r}") from self.failure

    def catch_up(self) -> None:
        """Wait for the end of a turn that is under way: it notes a packet after it has sent it."""
        if self._thread and self._thread is not threading.current_thread():
            job = _Job(int)
            self._jobs.append(job)
            self.broker.wake()
            if not self._is_ending:
                job.done.wait(_MOMENT_S)

    def settle(self) -> None:
        """Wait until the broker has handled what it has: a turn has begun and ended."""
        for _ in range(2):
            self.do(int)
            self.broker.wake()
        self.do(int)

    def stop(self) -> None:
        """Stop the broker in order, as Ctrl-C does; the port stays."""
        self._join()
        if self.broker:
            self._let_it_end()
            with suppress(Exception) if self.failure else nullcontext():
                self.broker.close()
            self._release()

    def power_cut(self) -> None:
        """End without a farewell: what is not in the journal is lost."""
        self._join()
        for line in list(self.network.lines):
            line.late.clear()
            reset(line.raw)
        self.network.lines.clear()
        loop = self.broker.loop
        loop.close = lambda: None  # close() only gives back what the process has
        if self.broker.journal:
            self.broker.journal.medium.close()
        self._let_it_end()
        self.broker.close()
        self._release()

    def close(self) -> None:
        """Stop, and give everything back. NotRunning: a callback has raised, and nobody knows.

        After a fork() the child leaves all to its parent."""
        if self._pid != os.getpid():
            return
        self.check_thread()
        try:
            self.stop()
        finally:
            self.network.shut()
            self._remove_folder()
        if not self._is_told:
            self.check_failure()

    def advance(self, tenths: int) -> None:
        """Let time pass, in steps; clients that are not half open stay alive meanwhile."""
        self.check_thread()
        if not 0 < tenths <= _LONGEST:
            raise ValueError("advance(): more than 0, at most 250 days")
        step = max(_STEP, -(-tenths // _STEPS))
        while tenths > 0:
            self._step(min(step, tenths))
            tenths -= step
        self.settle()

    def _step(self, tenths: int) -> None:
        def move() -> None:
            broker = self.broker
            broker.now += tenths
            broker.clock[0] = broker.now
            conns = broker.conns
            for conn in range(conns.top):
                stream = conns.stream[conn]
                if not (isinstance(stream, Line) and stream.silent):
                    conns.last_activity[conn] = broker.now
            broker.loop.next_tick = broker.now
            tick(broker)
            broker.loop.finish_turn()

        self.do(move)

    def _join(self) -> None:
        self.check_thread()
        self._is_ending = True
        if self._thread:
            self.broker.wake()
            self._thread.join()
            self._thread = None

    def _let_it_end(self) -> None:
        for name in ("stop", "close"):
            vars(self.broker).pop(name, None)

    def _release(self) -> None:
        self.broker = None

    def _remove_folder(self) -> None:
        if self._folder:
            shutil.rmtree(self._folder, ignore_errors=True)

    def _log(self, _bit: int, text: str) -> None:
        self.log.append(text)
