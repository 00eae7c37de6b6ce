# asyncio_app.py - the broker as one task of an asyncio program. Two other tasks publish a
# heartbeat, and execute commands. On a computer `python asyncio_app.py` runs it until Ctrl-C;
# `python asyncio_app.py server.crt server.key users` does so over TLS, with the files of `slotmq
# certs`, for those who are in the file `users` of `slotmq passwd`.
import asyncio
import sys

from slotmq import Broker, Limits, Settings


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


def over_tls(certfile, keyfile):
    """What a listener needs for TLS (on CPython)."""
    import ssl

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certfile, keyfile)
    return {"tls": context}


async def serve(port, every_s, options=None, users=None):
    """Runs all tasks until the broker stops. A message to app/stop stops it. options: of the
    listener; users: a password_file."""
    settings = Settings(password_file=users, allow_anonymous=users is None)
    broker = Broker(Limits(connections=5), settings)
    broker.listen("0.0.0.0", port, options=options)
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


def main(port=1883, every_s=1, certfile=None, keyfile=None, users=None):
    """Run the program."""
    options = over_tls(certfile, keyfile) if certfile else None
    asyncio.run(serve(port, every_s, options, users))


if __name__ == "__main__":
    print("asyncio_app: port 1883; Ctrl-C, or a message to app/stop, ends it")
    try:
        main(1883, 1, *sys.argv[1:])
    except KeyboardInterrupt:
        pass
