# boot.py - brings a board up: network and broker, and neither ever gives up.
#
# Owns two files beside main.py: network.json, which `slotmq deploy` writes, says how the
# board comes onto the network; slotmq.boots counts starts that have not lived for a
# minute. The start after three of those, or a configuration that cannot be used, is safe
# mode: no broker, no watchdog, a fast LED and the REPL. So is Ctrl-C, but for the LED.
# Any other end is a new start, as if the watchdog had bitten.
# On a computer, where there is neither `network` nor `machine`, it runs all the same.
# Allocates between two turns of the broker, a little, when something changes.
import json
import os
import sys
import time

from slotmq import app
from slotmq_run import links, wall, watch

_BOOTS = "slotmq.boots"
_DEAD = 3
_ALIVE_MS = 60000
_TURN_MS = 250
_STEP_MS = 200


def ticks_ms():
    """Milliseconds from anywhere; CPython has no function of this name."""
    if hasattr(time, "ticks_ms"):
        return time.ticks_ms()
    return getattr(time, "monotonic_ns")() // 1000000 & 0x3FFFFFFF  # noqa: B009 - no board has it


def since(now, then):
    """Milliseconds between two of these moments."""
    return (now - then) & 0x3FFFFFFF


def run(folder="", turns=0):
    """Run the board until Ctrl-C; the broker's exit status. `turns`: no more of them."""
    count = _count_boot(folder)
    try:
        config = _read(folder + "network.json")
        link = links.make(config)
    except (OSError, ValueError, KeyError, TypeError) as error:
        return _safe(folder, None, "network.json: %r; `slotmq deploy` writes it" % error)
    led = watch.Led(config.get("led", "LED"))
    if count >= _DEAD:
        return _safe(folder, led, "%d starts ended within a minute" % count)
    board = Board(folder, config, link, led, turns)
    arguments = ["-c", folder + "slotmq.conf", "--board", config.get("board", "HOST")]
    try:
        status = app.main(arguments, on_ready=board.serve)
    except Exception as error:
        watch.restart(error)
        raise  # a computer has somebody who sees it
    finally:
        board.dog.release()
    if status:
        return _safe(folder, led, "the broker did not start: see the line above")
    forget_boots(folder)  # it ended in order, however young it was
    led.show(watch.OFF)
    return status


class Board:
    """What runs beside the broker, once in so many turns."""

    def __init__(self, folder, config, link, led, turns):
        self.folder = folder
        self.link = link
        self.led = led
        self.turns = turns
        self.dog = watch.Dog(config.get("watchdog", 8000))
        self.clock = wall.Clock(config.get("time"))

    def serve(self, broker):
        """Turn the broker for ever."""
        began = last = ticks_ms()
        young = True
        self.clock.follow(broker)
        self.link.start(began)
        self.dog.start()
        while True:
            broker.turn(_TURN_MS)
            self.dog.feed()  # only here: a loop that does not turn feeds nobody
            now = ticks_ms()
            if since(now, last) >= _STEP_MS:
                last = now
                self._step(now)
            if young and since(now, began) >= _ALIVE_MS:
                young = False
                forget_boots(self.folder)
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
        if link.up:
            self.clock.step(now)


def forget_boots(folder):
    """This start has lived long enough."""
    try:
        os.remove(folder + _BOOTS)
    except OSError:
        pass  # it was not there


def _count_boot(folder):
    # starts before this one that did not live for a minute
    try:
        with open(folder + _BOOTS) as file:
            count = len(file.read())
    except OSError:
        count = 0
    try:
        with open(folder + _BOOTS, "w") as file:
            file.write("+" * (count + 1))
    except OSError:
        pass  # a full flash is no reason not to start
    return count


def _read(path):
    with open(path) as file:
        return json.load(file)


def _safe(folder, led, why):
    # Nothing runs any more; the next start tries again.
    print("slotmq: safe mode:", why, file=sys.stderr)
    forget_boots(folder)
    if led:
        led.alarm()
    return 1
