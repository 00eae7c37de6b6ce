# serving_cpython.py - a broker as a task of asyncio on CPython: Broker.serve(), and `async with
# Broker() as broker:`. Owns nothing. Allocates.
#
# As asyncio_task.py, but what other tasks and threads ask for (Broker.wake()) ends the nap between
# two turns at once. In `async with` the broker is served in a task beside the body. If that fails,
# as when a callback raises, the body is cancelled at its next await, as in an asyncio.TaskGroup,
# and the exception leaves the `async with`.
import asyncio

from slotmq.constants import BYTES_IN
from slotmq.embed.arguments_cpython import Closed

_NAP_S = 0.005


async def serve(broker):
    """Serve until stop(), close() or cancellation, then shut down as run() does."""
    try:
        await _turns(broker)
    except Closed:
        pass  # another task or thread has done it
    finally:
        broker.stop()
        try:
            broker.run()
        except Closed:
            pass


async def _turns(broker):
    stats = broker.stats
    before = -1
    while not broker.loop or not broker.loop.stopping:
        broker.turn(0)
        now = stats[BYTES_IN]
        if now != before:
            await asyncio.sleep(0)
        else:
            await _nap(broker)
        before = now


async def _nap(broker):
    loop = asyncio.get_running_loop()
    over = loop.create_future()

    def end():
        over.done() or over.set_result(None)

    def end_soon():
        try:
            loop.call_soon_threadsafe(end)
        except RuntimeError:
            pass  # the loop is closed: nobody sleeps

    broker.end_nap = end_soon
    timer = loop.call_later(_NAP_S, end)
    if broker.turn_soon or broker.loop.stopping:  # another thread was faster
        end()
    try:
        await over
    finally:
        broker.end_nap = None
        timer.cancel()


async def enter(broker):
    """Serve in a task of its own from now on."""
    broker.body = asyncio.current_task()
    broker.task = asyncio.create_task(_serve(broker))
    await asyncio.sleep(0)  # it has begun
    return broker


async def _serve(broker):
    try:
        await broker.serve()
    except Exception:
        if broker.body:
            broker.body.cancel("the broker beside it has failed")
        raise


async def leave(broker):
    """Let that task end, with its exception if there was one."""
    body, broker.body = broker.body, None
    task = broker.task
    has_failed = task.done() and not task.cancelled() and task.exception()
    if has_failed:
        body.uncancel()
    else:
        broker.stop()
    try:
        await task
    finally:
        broker.close()
