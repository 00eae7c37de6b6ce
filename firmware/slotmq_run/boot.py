# boot.py - brings a board up: network and broker, and neither ever gives up.
#
# Owns network.json beside main.py, which `slotmq deploy` writes: how the board comes onto the
# network. A configuration that cannot be used is safe mode (starts.py). Ctrl-C is an orderly end.
# Any other end is a new start, as if the watchdog had bitten; so is a start that the machine
# could not do: no heap, no socket, a driver that fails.
# On a computer, where there is neither `network` nor `machine`, it runs all the same.
# Allocates between two turns of the broker, a little, when something changes.
import json
import sys
import time

from slotmq import app
from slotmq_run import links, starts, watch

_ALIVE_MS = 60000
_TURN_MS = 250
_STEP_MS = 200
_CANNOT = 1  # the broker's status: what the machine could not do
_UNUSABLE = "network.json: %r; `slotmq deploy` writes it"


def ticks_ms():
    """Milliseconds from anywhere; CPython has no function of this name."""
    if hasattr(time, "ticks_ms"):
        return time.ticks_ms()
    return getattr(time, "monotonic_ns")() // 1000000 & 0x3FFFFFFF  # noqa: B009 - no board has it


def since(now, then):
    """Milliseconds between two of these moments."""
    return (now - then) & 0x3FFFFFFF


def run(folder, turns):
    """Run the board until Ctrl-C; the broker's exit status. `turns`: no more of them, if any."""
    config, link = _network(folder + "network.json")
    led = watch.Led(config.get("led", "LED"))
    board = Board(folder, config, link, led, turns)
    arguments = [
        "-c",
        folder + "slotmq.conf",
        "--board",
        config.get("board", "HOST"),
    ]
    board.dog.start()
    try:
        # Before the tables: an ESP32's Wi-Fi needs memory that the heap would take.
        link.start(ticks_ms())
        board.dog.release()  # a long journal feeds nobody
        status = app.main(arguments, on_ready=board.serve)
    finally:
        board.dog.release()
    if status:
        why = "the broker did not start: %s" % app.refused[0]
        raise RuntimeError(why) if status == _CANNOT else starts.Safe(why)  # it can perhaps anew
    led.show(watch.OFF)
    return status


def _network(path):
    # What network.json says, and the link that it names. A driver that raises OSError is not the
    # file's fault.
    try:
        with open(path) as file:
            config = json.load(file)
    except (OSError, ValueError) as error:
        raise starts.Safe(_UNUSABLE % error)
    try:
        link = links.make(config)
        config["watchdog"] = watch.timeout(config)
        return config, link
    except (ValueError, KeyError, TypeError) as error:
        raise starts.Safe(_UNUSABLE % error)


class Board:
    """What runs beside the broker, once in so many turns."""

    def __init__(self, folder, config, link, led, turns):
        self.folder = folder
        self.link = link
        self.led = led
        self.turns = turns
        self.dog = watch.Dog(config["watchdog"])
        self.clock = None
        if config.get("time"):
            from slotmq_run import wall

            self.clock = wall.Clock(config["time"], link)

    def serve(self, broker):
        """Turn the broker for ever."""
        began = last = ticks_ms()
        young = True
        if sys.platform == "esp32":
            print(app.memory())
        self.dog.start()
        if self.clock:
            self.clock.follow(broker)
            self.dog.feed()
        while True:
            broker.turn(_TURN_MS)
            self.dog.feed()  # only here: a loop that does not turn feeds nobody
            now = ticks_ms()
            if since(now, last) >= _STEP_MS:
                last = now
                self._step(now)
            if young and since(now, began) >= _ALIVE_MS:
                young = False
                starts.forget(self.folder)
            if self.turns:
                self.turns -= 1
                if not self.turns:
                    return

    def _step(self, now):
        link = self.link
        if link.step(now):
            print(link.told())
        self.led.show(watch.UP if link.up else watch.JOINING)
        self.led.step(now)
        if link.up and self.clock:
            try:
                self.clock.step(now)
            except MemoryError:
                pass  # clients have what there is just now; the next step tries again
