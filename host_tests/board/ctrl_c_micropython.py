"""Runs on the emulated board: interrupts turns with Ctrl-C, each time a little later."""

import machine

from slotmq import Broker
from slotmq_boards.RPI_PICO_W.limits import LIMITS

_TYPE = 0x4005800C  # the emulator types Ctrl-C so many nanoseconds after a write
_AFTER = 1 << 24
_MOMENTS = 400
_STEP_NS = 3000

broker = Broker(LIMITS)
broker.listen("0.0.0.0", 1883)


def interrupted(nanos):
    machine.mem32[_TYPE] = _AFTER + nanos
    try:
        while True:
            broker.turn(0)
            broker.publish("x", "y", 1, True)
    except KeyboardInterrupt:
        pass


def locked():
    try:
        bytearray(64)
    except MemoryError:
        return True
    return False


def main():
    for n in range(_MOMENTS):
        interrupted(n * _STEP_NS)
        if locked():
            return n
    return _MOMENTS


print(main())
