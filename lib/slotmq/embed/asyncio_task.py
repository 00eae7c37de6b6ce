# asyncio_task.py - a broker as a task of asyncio, beside the application's tasks. A file of its
# own, since it imports asyncio. Owns nothing.
#
# Runs a turn that does not wait, then yields to the other tasks: once while data comes in, else
# for _IDLE_MS. Allocates what asyncio does.
import asyncio

from slotmq.constants import BYTES_IN


_IDLE_MS = 5


async def serve(broker):
    """Serve until stop() or cancellation, then shut down as run() does."""
    stats = broker.stats
    before = -1
    try:
        while not broker.loop or not broker.loop.stopping:
            broker.turn(0)
            now = stats[BYTES_IN]
            await asyncio.sleep(0 if now != before else _IDLE_MS / 1000)
            before = now
    finally:
        broker.stop()
        broker.run()


async def enter(broker):
    """Serve in a task of its own from now on."""
    broker.task = asyncio.create_task(serve(broker))
    return broker


async def leave(broker):
    """Let that task end, with its exception if there was one."""
    broker.stop()
    try:
        await broker.task
    finally:
        broker.close()
