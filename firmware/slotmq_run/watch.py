# watch.py - the watchdog and the LED. On a computer, which has neither, they do nothing.
#
# Dog resets a board whose loop hangs. It is released before the REPL starts, which does
# not feed it. Led shows one of four states.
import sys

try:
    import machine
except ImportError:
    machine = None  # type: ignore[assignment]
try:
    from micropython import const
except ImportError:  # not on MicroPython
    const = int  # type: ignore[assignment, unused-ignore]

OFF, UP, JOINING, ALARM = 0, 1, 2, 3
_BLINK_MS = const(500)
_ALARM_MS = const(100)
# RP2040 and RP2350: the watchdog's control register, and its ENABLE bit
_CONTROL = {"RP2040": 0x40058000, "RP2350": 0x400D8000}
_ENABLE = const(1 << 30)
_LONGEST_MS = const(0x7FFFFFF)


def timeout(config):
    """The watchdog's timeout in network.json, in ms; 0: no watchdog. ValueError: out of range."""
    ms = config.get("watchdog", 8000)
    # A link that comes up may block for a second. The maximum is an RP2040's (machine_wdt.c).
    if ms != 0 and (type(ms) is not int or not 2000 <= ms <= 8388):
        raise ValueError("watchdog: 0, or 2000 to 8388 ms")
    return ms


class Dog:
    def __init__(self, timeout_ms):
        self._timeout_ms = timeout_ms
        self._dog = None

    def start(self):
        if machine and self._timeout_ms and hasattr(machine, "WDT"):
            self._dog = machine.WDT(timeout=self._timeout_ms)

    def feed(self):
        if self._dog:
            self._dog.feed()

    def release(self):
        """Stop the watchdog, or on an ESP32, give it the longest timeout."""
        if not self._dog:
            return
        self._dog.feed()
        self._dog = None
        control = 0
        for chip, address in _CONTROL.items():
            if _chip().endswith(chip):
                control = address
        if control:
            machine.mem32[control] = machine.mem32[control] & ~_ENABLE
        else:
            machine.WDT(timeout=_LONGEST_MS)  # an ESP32 cannot stop it


def _chip():
    return getattr(sys.implementation, "_machine", "")


class Led:
    def __init__(self, pin):
        self._pin = None
        self._state = OFF
        self._lit = -1
        if hasattr(machine, "Pin") and pin is not None:
            try:
                self._pin = machine.Pin(pin, machine.Pin.OUT)
            except (TypeError, ValueError):
                pass  # the board has no pin of this name

    def show(self, state):
        """UP: lit. JOINING: blinks. ALARM: blinks fast."""
        if state != self._state:
            self._state = state
            self.step(0)

    def step(self, now):
        ms = _ALARM_MS if self._state == ALARM else _BLINK_MS
        lit = self._state == UP or (self._state >= JOINING and now // ms & 1)
        if self._pin and lit != self._lit:
            self._lit = lit
            self._pin.value(1 if lit else 0)
