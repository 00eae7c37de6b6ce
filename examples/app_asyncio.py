# app_asyncio.py - an application beside the broker on a board, as a task of asyncio: deployed
# as app.py (`slotmq deploy --app app_asyncio.py`), it runs while the firmware turns the broker.
# docs/embed.md has its contract.
#
#   app/heartbeat    a number that grows
#   app/do/NAME      a command; its end is told at app/done/NAME
import asyncio


async def work(broker, commands):
    """Does what the callback left for it, one after the other."""
    while True:
        while commands:
            topic, payload = commands.pop(0)
            await asyncio.sleep(0.01)  # whatever takes time
            broker.publish("app/done/" + topic.split("/")[-1], payload, 1)
        await asyncio.sleep(0.02)


async def start(broker):
    """Runs as long as the board does; what it raises starts the board again."""
    commands = []
    broker.subscribe("app/do/+", lambda topic, payload, *_: commands.append((topic, payload)), 1)
    worker = asyncio.create_task(work(broker, commands))  # noqa: F841 - or it would be collected
    beat = 0
    while True:
        broker.publish("app/heartbeat", str(beat))
        beat += 1
        await asyncio.sleep(1)
