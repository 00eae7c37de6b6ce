# computer.py - stands for the board and its firmware when app.py or app_asyncio.py is run on a
# computer: pins that print what they would do, and the broker with its turns. No board needs it.
import asyncio
import time

from slotmq import Broker, Limits

if not hasattr(time, "ticks_ms"):
    time.ticks_ms = lambda: time.monotonic_ns() // 1000000
    time.ticks_diff = lambda now, then: now - then


class ADC:
    """A sensor that reads 27 degrees."""

    def __init__(self, number):
        pass

    def read_u16(self):
        return 14021


class Pin:
    """An output."""

    OUT = 1

    def __init__(self, number, mode):
        self.number = number

    def value(self, on):
        print("pin %d: %s" % (self.number, "on" if on else "off"), flush=True)


async def serve(broker, coroutine):
    """Let the broker have its turns while the application runs."""
    async with broker:
        await coroutine


def run(name, start, port=1883):
    """Run the application until Ctrl-C. What start() returns decides how, as on a board."""
    print("%s: port %d of this computer; Ctrl-C ends it" % (name, port), flush=True)
    try:
        with Broker(Limits(connections=5)) as broker:
            broker.listen("127.0.0.1", port)
            returned = start(broker)
            if asyncio.iscoroutine(returned):
                asyncio.run(serve(broker, returned))
            while True:
                broker.turn(50)
                if returned:
                    returned()
    except KeyboardInterrupt:
        pass


if __name__ == "__main__":
    print("computer: has nothing to run by itself; python app.py and app_asyncio.py use it")
