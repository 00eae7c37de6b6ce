# asyncio_task.py - a broker as a task of asyncio, beside an application's own.
#
# A turn that waits for nothing, then the others: at once while there is something to do,
# after a short sleep where not. Allocates what asyncio does.
import asyncio

from slotmq.platform.runtime import const

_IDLE_MS = const(5)
_BYTES_IN = const(5)


async def serve(broker):
    """Serve until stop(), then end in order, as run() does; or until it is cancelled."""
    stats = broker.stats
    before = -1
    try:
        while not broker.loop or not broker.loop.stopping:
            broker.turn(0)
            now = stats[_BYTES_IN]
            await asyncio.sleep(0 if now != before else _IDLE_MS / 1000)
            before = now
    finally:
        broker.stop()
        broker.run()
