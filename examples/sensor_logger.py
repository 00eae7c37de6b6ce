# sensor_logger.py - publishes the readings of a sensor, retained, and appends the readings of all
# sensors to a file. The broker runs in the application's own loop.
#
# On a computer `python sensor_logger.py` runs it until Ctrl-C; on a board, main.py calls main().
# Every client in the network may connect; listen on "127.0.0.1" to keep it on this computer.
import time

from slotmq import Broker, Limits

_EVERY_MS = 1000


def ticks_ms():
    """Milliseconds, on a board and on a computer."""
    return time.ticks_ms() if hasattr(time, "ticks_ms") else int(time.monotonic() * 1000)


def since(now, then):
    """Milliseconds between two ticks_ms(), which wrap around on a board after 12 days."""
    return (now - then) & 0x3FFFFFFF


def read_sensor():
    """Replace it: read an ADC, I2C, or whatever your sensor needs."""
    return 21.5


def main(port=1883, path="readings.csv", read=read_sensor, every_ms=_EVERY_MS, turns=-1):
    """Run forever, or for that many turns."""
    broker = Broker(Limits(connections=5))  # four network clients, and this program
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
    broker.run()  # shuts down


if __name__ == "__main__":
    print("sensor_logger: port 1883, readings.csv; Ctrl-C ends it")
    try:
        main()
    except KeyboardInterrupt:
        pass
