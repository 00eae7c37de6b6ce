# boot.py - runs the board: network, watchdog, LED, clock and broker. The network retries forever.
#
# Reads network.json, which `slotmq deploy` writes beside main.py. An unusable configuration leads
# to safe mode (boot_counter.py). Ctrl-C stops the broker in order. Any other end resets the board,
# as the watchdog would; so does a failure of the machine (no heap, no socket, a failing driver).
#
# It also runs on a computer, without the modules `network` and `machine`. Between two turns of the
# broker it allocates a little when something changes.
import json
import sys
import time

from slotmq import app
from slotmq_run import boot_counter, network_link, watch

_ALIVE_MS = 60000
_TURN_MS = 250
_STEP_MS = 200
_CANNOT = 1  # exit status of the broker: the machine failed, not the configuration
_UNUSABLE = "network.json: %r; `slotmq deploy` writes it"


def ticks_ms():
    """Milliseconds since an arbitrary moment, as time.ticks_ms() of MicroPython."""
    if hasattr(time, "ticks_ms"):
        return time.ticks_ms()
    return getattr(time, "monotonic_ns")() // 1000000 & 0x3FFFFFFF  # noqa: B009 - no port has it


def since(now, then):
    """Milliseconds between two values of ticks_ms()."""
    return (now - then) & 0x3FFFFFFF


def run(folder, turns):
    """Run until Ctrl-C; -> the broker's exit status. `turns`: end after so many turns; 0: never.

    boot_counter.Safe: the configuration cannot be used. RuntimeError: the machine failed."""
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
        # Before the tables are allocated: an ESP32's Wi-Fi needs memory that the heap would take.
        link.start(ticks_ms())
        board.dog.release()  # reading a long journal takes longer than its timeout
        status = app.main(arguments, on_ready=board.serve)
    finally:
        board.dog.release()
    if status:
        why = "the broker did not start: %s" % app.refused[0]
        # RuntimeError resets the board
        raise RuntimeError(why) if status == _CANNOT else boot_counter.Safe(why)
    led.show(watch.OFF)
    return status


def _network(path):
    # The content of network.json, and the link that it names. OSError of a driver is passed on,
    # since it is not the file's fault.
    try:
        with open(path) as file:
            config = json.load(file)
    except (OSError, ValueError) as error:
        raise boot_counter.Safe(_UNUSABLE % error)
    try:
        link = network_link.make(config)
        config["watchdog"] = watch.timeout(config)
        return config, link
    except (ValueError, KeyError, TypeError) as error:
        raise boot_counter.Safe(_UNUSABLE % error)


class Board:
    """Watchdog, network, LED and clock, which run between turns of the broker."""

    def __init__(self, folder, config, link, led, turns):
        self.folder = folder
        self.link = link
        self.led = led
        self.turns = turns
        self.dog = watch.Dog(config["watchdog"])
        self.clock = None
        if config.get("time"):
            from slotmq_run import wall_clock

            self.clock = wall_clock.Clock(config["time"], link)

    def serve(self, broker):
        """Run the broker's turns; app.main() calls it when the broker is ready."""
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
            self.dog.feed()  # only here, so that a loop that hangs is reset
            now = ticks_ms()
            if since(now, last) >= _STEP_MS:
                last = now
                self._step(now)
            if young and since(now, began) >= _ALIVE_MS:
                young = False
                boot_counter.forget(self.folder)
            if self.turns:
                self.turns -= 1
                if not self.turns:
                    return

    def _step(self, now):
        link = self.link
        if link.step(now):
            print(link.state())
        self.led.show(watch.UP if link.up else watch.JOINING)
        self.led.step(now)
        if link.up and self.clock:
            try:
                self.clock.step(now)
            except MemoryError:
                pass  # clients use the heap at the moment; the next step tries again
