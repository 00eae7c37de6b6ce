# watch.py - the watchdog and the LED of a board, or of none.
#
# Dog resets a board whose loop stands still. It is let go of before the REPL gets the
# board, or it would bite whoever types. Led shows one of three states.
import sys

try:
    import machine
except ImportError:
    machine = None  # type: ignore[assignment]

OFF, UP, JOINING = 0, 1, 2
_BLINK_MS = 500
_ALARM_HZ = 5
_alarms: list = []  # an RP2040's timer ends where nothing holds it
# RP2040 and RP2350: the watchdog's control register, and the bit that lets it run
_CONTROL = {"RP2040": 0x40058000, "RP2350": 0x400D8000}
_ENABLE = 1 << 30
_LONGEST_MS = 0x7FFFFFF


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
        """Whoever has the board now need not feed it."""
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
            machine.WDT(timeout=_LONGEST_MS)  # an ESP32's cannot be stopped


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
                pass  # this board has none of that name

    def show(self, state):
        """OFF, UP: lit, JOINING: it blinks."""
        if state != self._state:
            self._state = state
            self.step(0)

    def step(self, now):
        lit = self._state == UP or (self._state == JOINING and now // _BLINK_MS & 1)
        if self._pin and lit != self._lit:
            self._lit = lit
            self._pin.value(1 if lit else 0)

    def alarm(self):
        """Blink fast from now on, while nothing else runs."""
        pin = self._pin
        if pin:
            try:
                timer = machine.Timer(-1)
            except ValueError:  # an ESP32 has hardware timers only
                timer = machine.Timer(0)
            timer.init(freq=_ALARM_HZ * 2, callback=lambda _: pin.value(not pin.value()))
            _alarms.append(timer)
