# asyncio_app.py - the broker as one task of an asyncio program. Two other tasks publish a
# heartbeat, and execute commands. On a computer `python asyncio_app.py` runs it until Ctrl-C.
import asyncio

from slotmq import Broker, Limits


async def heartbeat(broker, every_s):
    """Publishes a number that grows."""
    beat = 0
    while True:
        broker.publish("app/heartbeat", str(beat))
        beat += 1
        await asyncio.sleep(every_s)


async def answer(broker, commands):
    """Executes the commands that the callback has queued."""
    while True:
        while commands:
            topic, payload = commands.pop(0)
            await asyncio.sleep(0.01)  # stands for work
            broker.publish("app/done/" + topic.split("/")[-1], payload)
        await asyncio.sleep(0.02)


async def serve(port, every_s):
    """Runs all tasks until the broker stops. A message to app/stop stops it."""
    broker = Broker(Limits(connections=5))
    broker.listen("0.0.0.0", port)
    commands = []
    broker.subscribe("app/do/+", lambda topic, payload, *_: commands.append((topic, payload)), 1)
    broker.subscribe("app/stop", lambda *_: broker.stop())
    others = [
        asyncio.create_task(heartbeat(broker, every_s)),
        asyncio.create_task(answer(broker, commands)),
    ]
    try:
        await broker.serve()
    finally:
        for task in others:
            task.cancel()


def main(port=1883, every_s=1):
    """Run the program."""
    asyncio.run(serve(port, every_s))


if __name__ == "__main__":
    print("asyncio_app: port 1883; Ctrl-C, or a message to app/stop, ends it")
    try:
        main()
    except KeyboardInterrupt:
        pass
