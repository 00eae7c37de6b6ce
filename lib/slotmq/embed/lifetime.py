# lifetime.py - Broker.close(), and a broker in `with` and in `async with`. Loaded when the program
# uses one of them. Owns nothing. Allocates.


def find(broker, name):
    """close(), or a method that `with` or `async with` asks for; else AttributeError."""
    if name == "close":
        return lambda: close(broker)
    if name == "__enter__":
        return lambda: broker
    if name == "__exit__":
        return lambda *_: broker.close()
    if name not in ("__aenter__", "__aexit__"):
        raise AttributeError(name)
    from slotmq.embed import asyncio_task

    if name == "__aenter__":
        return lambda: asyncio_task.enter(broker)
    return lambda *_: asyncio_task.leave(broker)


def close(broker):
    """Publish or store the wills and close all sockets, as the end of run() does."""
    broker.stop()
    broker.run()
