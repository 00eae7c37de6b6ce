# sensor_logger.py - an application and the broker on one board: a sensor is read now and
# then and published, retained, and every reading of every sensor goes into a file.
#
# The application keeps its own loop, and gives the broker a turn in it.
import time

from slotmq import Broker, Limits

_EVERY_MS = 1000


def ticks_ms():
    """Milliseconds, on a board and on a computer."""
    return time.ticks_ms() if hasattr(time, "ticks_ms") else int(time.monotonic() * 1000)


def since(now, then):
    """Milliseconds between two of these moments, though a board's begin anew after 12 days."""
    return (now - then) & 0x3FFFFFFF


def read_sensor():
    """In your program: an ADC, I2C, whatever there is."""
    return 21.5


def main(port=1883, path="readings.csv", read=read_sensor, every_ms=_EVERY_MS, turns=-1):
    """Log for ever, or for so many turns."""
    broker = Broker(Limits(connections=5))  # four on the network, and the logger itself
    broker.listen("0.0.0.0", port)

    def log(topic, payload, _qos, _retained):
        with open(path, "a") as file:
            file.write("%s,%s\n" % (topic, payload.decode()))

    broker.subscribe("sensors/#", log, 1)
    last = ticks_ms() - every_ms
    while turns:
        turns -= 1
        broker.turn(50)
        now = ticks_ms()
        if since(now, last) >= every_ms:
            last = now
            broker.publish("sensors/here", str(read()), 1, retain=True)
    broker.stop()
    broker.run()  # ends in order
