# serving_cpython.py - `async with Broker() as broker:` on CPython. Owns nothing. Allocates.
#
# The broker is served in a task beside the body. If that fails, as when a callback raises, the
# body is cancelled at its next await, as in an asyncio.TaskGroup, and the exception leaves the
# `async with`.
import asyncio


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
