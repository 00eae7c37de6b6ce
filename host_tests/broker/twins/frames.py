# frames.py SEED COUNT - WebSocket frames, right and wrong, in reads of random lengths.
import sys

from seeded import Numbers, shown

from slotmq.net.websocket import unwrap
from slotmq.platform.arrays import i32

KINDS = (2, 2, 2, 2, 0, 0, 8, 9, 9, 10, 1, 3, 11)
FORMS = (0, 0, 0, 126, 127)


def frame(numbers):
    """A frame, or nearly one."""
    kind = numbers.choice(KINDS) | (0 if numbers.one_in(4) else 128)
    n = numbers.choice((0, 1, 2, 3, 4, 5, 7, 8, 9, 35, 63, 125, 126, 200, 300))
    form = numbers.choice(FORMS)
    form = form or (n if n < 126 else 126)
    size = b"" if form < 126 else n.to_bytes(2 if form == 126 else 8, "big")
    data = bytearray(bytes((kind, form | 128)) + size + numbers.bytes(4 + n))
    if numbers.one_in(20):
        data[numbers.below(len(data))] = numbers.below(256)
    return bytes(data)


def session(numbers):
    state = i32(8)
    control = bytearray(18 + 125)
    data = b"".join([frame(numbers) for _ in range(numbers.between(1, 6))])
    at = 0
    while at < len(data):
        n = numbers.choice((1, 2, 3, 6, 7, 50, 1000))
        buf = bytearray(data[at : at + n] + numbers.bytes(4))
        n = len(buf) - 4
        state[0] = state[1] = 0
        while True:
            event = unwrap(state, control, buf, n)
            print(event, list(state), shown(bytes(buf[: state[0]])), shown(bytes(buf[n:])))
            if event in (8, 9, 10):
                print(shown(bytes(control[18 : 18 + state[7]])))
            elif event:
                return
            else:
                break
        at += n


def main(seed, count):
    numbers = Numbers(seed)
    for _ in range(count):
        session(numbers)


main(int(sys.argv[1]), int(sys.argv[2]))
