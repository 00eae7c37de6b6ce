# app_asyncio.py - an application beside the broker on a board, as a task of asyncio.
# `slotmq deploy --app app_asyncio.py` installs it as app.py; docs/embed.md describes its
# interface. On a computer `python app_asyncio.py` runs it until Ctrl-C.
#
#   app/heartbeat    a number that grows
#   app/do/NAME      a command; when it is done, app/done/NAME is published
import asyncio


async def work(broker, commands):
    """Executes the commands that the callback has queued, one after the other."""
    while True:
        while commands:
            topic, payload = commands.pop(0)
            await asyncio.sleep(0.01)  # stands for work
            broker.publish("app/done/" + topic.split("/")[-1], payload, 1)
        await asyncio.sleep(0.02)


async def start(broker):
    """Runs as long as the board does; an exception restarts the board."""
    commands = []
    broker.subscribe("app/do/+", lambda topic, payload, *_: commands.append((topic, payload)), 1)
    worker = asyncio.create_task(work(broker, commands))  # noqa: F841 - keeps the task from being collected
    beat = 0
    while True:
        broker.publish("app/heartbeat", str(beat))
        beat += 1
        await asyncio.sleep(1)


if __name__ == "__main__":
    from computer import run

    run("app_asyncio", start)
