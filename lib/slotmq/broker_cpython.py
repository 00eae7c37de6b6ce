# broker_cpython.py - the Broker of `from slotmq import Broker` on CPython, for programs with
# threads. docs/embed.md has the table of what may be called from where.
#
# Owns the lock that a thread holds during a turn or a run, the calls that other threads have made
# meanwhile, and a pipe in the loop's poller, which ends the wait for events. Such a call is made
# within the turn, between two events. If no turn is under way, the thread makes it itself. Owns
# also who serves (serve()), and why the broker has ended where an exception ended it.
# MicroPython does not have this file. Allocates.
import os
from _thread import RLock, allocate_lock, get_ident
from collections import deque

from slotmq import broker
from slotmq.constants import NONE
from slotmq.delivery import storms_cpython as storms
from slotmq.embed import arguments_cpython as arguments
from slotmq.embed import publishing
from slotmq.v5 import quick_properties_cpython as quick_properties

_MOMENT_S = 0.05
_KEPT = "_lock", "_in_turn", "_calls", "end_nap", "body", "task"  # by a broker that is closed


class _Call:
    """A call that waits for the thread that runs the broker."""

    def __init__(self, function, args):
        self.function = function
        self.args = args
        self.result = self.error = None
        self.done = allocate_lock()
        self.done.acquire()

    def make(self):
        try:
            self.result = self.function(*self.args)
        except BaseException as error:
            self.error = error
        self.done.release()


class _Bell:
    """A stream that is readable once it was rung. It is closed with its broker at the latest."""

    def __init__(self):
        self._in, self._out = os.pipe()
        os.set_blocking(self._in, False)
        os.set_blocking(self._out, False)

    def fileno(self):
        return self._in

    def ring(self):
        try:
            os.write(self._out, b"\0")
        except OSError:
            pass  # it has been rung often enough, or it is closed

    def hear(self):
        os.read(self._in, 4096)

    def close(self):
        ends, self._in, self._out = (self._in, self._out), -1, -1
        for end in ends:
            if end >= 0:
                os.close(end)

    __del__ = close


class Broker(broker.Broker):
    """A broker, in a program that may have threads."""

    def __init__(self, limits=None, settings=None):
        arguments.check_broker(limits, settings)
        self._lock = RLock()
        self._in_turn = self._is_closed = False
        self._calls = deque()
        self._bell = self._journal_lock = None
        self._server = None  # the thread of serve()
        self.end_nap = None  # a function, while serve() waits between two turns
        self._failure = None  # the exception that ended run() or serve()
        super().__init__(limits, settings)
        storms.make(self)
        self.five and quick_properties.make(self)

    # In any thread

    def call(self, function, *args):
        """Call function(*args) while no packet is being handled; -> its result, or its exception.

        Waits for it. It may do what may be done between two turns, except turn() and run()."""
        self._check_open()
        if self._failure:
            text = "this broker has ended, since a callback or a hook has raised %r"
            raise RuntimeError(text % self._failure) from self._failure
        if self._lock.acquire(blocking=False):
            try:
                return function(*args)
            finally:
                self._release()
                self.end_nap and self.wake()
        one = _Call(function, args)
        self._calls.append(one)
        self.wake()
        if self._lock.acquire(blocking=False):  # that turn has ended meanwhile
            self._release()
        one.done.acquire()
        if one.error:
            raise one.error
        return one.result

    def wake(self):
        """End the wait for events of a turn that is under way, or of serve() for the next one."""
        if self._is_closed:
            return
        end_nap = self.end_nap
        if end_nap:
            end_nap()
        elif self._bell:
            self._bell.ring()

    def publish(self, topic, payload=b"", qos=0, retain=False):
        return self.call(super().publish, topic, payload, qos, retain)

    def subscribe(self, topic_filter, callback, qos=0):
        return self.call(publishing.find(self, "subscribe"), topic_filter, callback, qos)

    def listen(self, host="127.0.0.1", port=1883, max_connections=0, options=None):
        arguments.check_address(host, port)
        return self.call(super().listen, host, port, max_connections, options)

    def stop(self):
        if not self._is_closed:
            super().stop()
            self.wake()

    def close(self):
        """End run() or serve() and close everything. A second call does nothing."""
        if self._is_closed:
            return
        if self._in_turn and self._lock._is_owned():
            raise RuntimeError("close(): not within a turn (callback, hook, call()): use stop()")
        self.stop()
        calls = self._calls
        with self._lock:
            if self._is_closed:
                return
            try:
                super().run()
            finally:  # also where a callback has raised
                self._bell.close()
                self._poller.close()
                if self._journal_lock:
                    self._journal_lock.close()
                kept = {name: vars(self)[name] for name in _KEPT if name in vars(self)}
                self.__dict__ = {"_is_closed": True, **kept}  # gives back the tables
        self._make_calls(calls)  # each says that the broker is closed

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    async def __aenter__(self):
        from slotmq.embed import serving_cpython

        return await serving_cpython.enter(self)

    async def __aexit__(self, *_):
        from slotmq.embed import serving_cpython

        await serving_cpython.leave(self)

    # In one thread at a time

    async def serve(self):
        """run() for asyncio; RuntimeError: the broker runs already."""
        from slotmq.embed import serving_cpython

        self._acquire()
        is_taken = self._server or self._in_turn
        if not is_taken:
            self._server = get_ident()
        self._release()
        if is_taken:
            raise RuntimeError("serve(): this broker is served already")
        try:
            await serving_cpython.serve(self)
        except Exception as error:
            self._failure = error
            raise
        finally:
            self._server = None

    def restore(self):
        """Read back the journal, and write to it from now on; with Settings(persistence=True).

        It lies in the settings' persistence_location, or else in the current folder. Call this
        before any client connects. ValueError: not with these settings. OSError: another broker
        keeps that journal."""
        from slotmq.embed import restoring_cpython

        self._journal_lock = self.call(restoring_cpython.restore, self)

    def turn(self, timeout_ms=250):
        self._begin()
        try:
            super().turn(timeout_ms)
        finally:
            self._end()

    def run(self):
        self._begin()
        try:
            super().run()
        except Exception as error:
            if self.loop.stopping:  # else it was refused
                self._failure = error
            raise
        finally:
            self._end()

    def apply_settings(self):
        self.check_thread()
        super().apply_settings()

    @property
    def hooks(self):
        return super().hooks

    @hooks.setter
    def hooks(self, hooks):
        arguments.check_hooks(hooks)
        broker.Broker.hooks.fset(self, hooks)

    def check_thread(self):
        """RuntimeError while another thread is in a turn of this broker, or serves it."""
        self._check_open()
        is_others = self._in_turn or self._server and self._server != get_ident()
        if is_others and not self._lock._is_owned():
            raise RuntimeError("another thread runs this broker now: use broker.call(function)")

    def __getattr__(self, name):
        self._check_open()
        return super().__getattr__(name)

    def _check_open(self):
        if self._is_closed:
            raise arguments.Closed("this broker is closed")

    def _acquire(self):
        self.check_thread()
        while not self._lock.acquire(timeout=_MOMENT_S):  # a call of another thread, or its turn
            self.check_thread()

    def _begin(self):
        self._acquire()
        try:
            self._check_open()
            if self._in_turn:
                raise RuntimeError("turn(), run(): not in a callback, a hook or call()")
            if self._server and self._server != get_ident():  # in call()
                raise RuntimeError("turn(), run(): the task of serve() runs this broker")
            loop = self._loop()  # from now on a call can ring
            if self.settings.persistence and not self.journal and not loop.stopping:
                raise RuntimeError(
                    "persistence: call broker.restore() first; nothing is kept else"
                )
        except RuntimeError:
            self._lock.release()
            raise
        self._in_turn = True
        self._make_calls(self._calls)

    def _end(self):
        self._in_turn = False
        self._release()

    def _release(self):
        # Looks again after it has released the lock: a call that came before that is not lost.
        if not self._in_turn:
            self._make_calls(self._calls)
        self._lock.release()
        while self._calls and not self._in_turn and self._lock.acquire(blocking=False):
            self._make_calls(self._calls)
            self._lock.release()

    def _loop(self):
        if self.loop is None:
            super()._loop()
            self._poller = self.loop.poller
            self._bell = _Bell()
            self.loop.watch(self._bell, self._hear)
        return self.loop

    def _hear(self, bell):
        bell.hear()
        self.reading = NONE  # also where a hook has raised in the midst of a packet
        self._make_calls(self._calls)

    def _make_calls(self, calls):
        while calls:
            try:
                one = calls.popleft()
            except IndexError:
                return  # another thread has made it
            one.make()
