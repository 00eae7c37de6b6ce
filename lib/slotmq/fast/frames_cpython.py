# frames_cpython.py - the contract of fast/frames_viper.py on CPython: a payload is unmasked as one
# large number. Allocates.
from slotmq.constants import (CODE_PROTOCOL, CODE_SIZE, CODE_TYPE, F_AT, F_CLOSE, F_CONTROL,
    F_DONE, F_HAVE, F_KIND, F_LEFT, F_MASK, F_OPEN, F_PHASE, F_SIZE)
_F_MOST = 0x3FFFFFFF


def unwrap(s, h, b, end):
    """See fast/frames_viper.py."""
    at = s[F_AT]
    while at < end:
        left = s[F_LEFT]
        if left:
            n = min(left, end - at)
            _unmask(s, h, b, at, n)
            at += n
            if s[F_KIND] and n == left:
                s[F_AT] = at
                return s[F_KIND]
            continue
        n = s[F_HAVE]
        if not n and at + 6 <= end and b[at] == 0x82 and 128 < b[at + 1] < 254 and not s[F_OPEN]:
            s[F_LEFT] = b[at + 1] - 128  # a whole header, of the usual kind
            s[F_KIND] = s[F_PHASE] = 0
            h[F_MASK : F_MASK + 4] = b[at + 2 : at + 6]
            at += 6
            continue
        h[n] = b[at]
        at += 1
        n += 1
        s[F_HAVE] = n
        if n < 2:
            continue
        event = _begin(s, h, n)
        if event:
            s[F_AT] = at
            return event
    s[F_AT] = end
    return 0


def _unmask(s, h, b, at, n):
    phase = s[F_PHASE]
    mask = bytes(h[F_MASK : F_MASK + 4])
    mask = (mask[phase:] + mask[:phase]) * (n // 4 + 1)
    data = int.from_bytes(b[at : at + n], "little") ^ int.from_bytes(mask[:n], "little")
    if s[F_KIND]:
        to, into = F_CONTROL + s[F_SIZE], h
        s[F_SIZE] += n
    else:
        to, into = s[F_DONE], b
        s[F_DONE] += n
    into[to : to + n] = data.to_bytes(n, "little")
    s[F_LEFT] -= n
    s[F_PHASE] = phase + n & 3


def _begin(s, h, n):
    # n bytes of a header are in h; -> an event, or 0: it goes on.
    first = h[0]
    kind = first & 15
    size = h[1] & 127
    if n == 2:
        wrong = _check(s[F_OPEN], first, kind, h[1])
        if wrong:
            return wrong
    need = 6 if size < 126 else 8 if size == 126 else 14
    if n < need:
        return 0
    if need > 6:
        size = int.from_bytes(h[2 : need - 4], "big")
        if size < (126 if need == 8 else 65536):
            return CODE_PROTOCOL  # a shorter form is possible [5.2]
        if size > _F_MOST:
            return CODE_PROTOCOL if h[2] > 127 and need == 14 else CODE_SIZE
    s[F_HAVE] = s[F_PHASE] = s[F_SIZE] = 0
    s[F_LEFT] = size
    h[F_MASK : F_MASK + 4] = h[need - 4 : need]
    s[F_KIND] = kind if kind >= F_CLOSE else 0
    if kind < F_CLOSE:
        s[F_OPEN] = int(first < 128)
    return 0 if size else kind if kind >= F_CLOSE else 1


def _check(is_open, first, kind, second):
    if first & 0x70 or kind > 10 or 2 < kind < F_CLOSE or second < 128:
        return CODE_PROTOCOL
    if kind >= F_CLOSE:
        return CODE_PROTOCOL if first < 128 or second > 128 + 125 else 0
    if kind == 1:
        return CODE_TYPE
    return 0 if bool(is_open) == (kind == 0) else CODE_PROTOCOL
