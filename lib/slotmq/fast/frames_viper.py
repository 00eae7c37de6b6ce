# frames_viper.py - takes WebSocket frames [RFC 6455, 5.2] off received bytes, in place, on
# MicroPython, in viper. Loaded for the first listener that speaks WebSocket. Does not allocate.
#
# unwrap(s, h, b, end) goes through b[s[F_AT]:end], the bytes that were read, and moves the
# payload of data frames, unmasked, to b[s[F_DONE]:], which never overtakes what is still to be
# read. What a frame needs beyond one read is in s, an array of 32-bit numbers, and in the bytes h:
#
#   s  F_DONE, F_AT; of the frame: F_HAVE bytes of its header so far, F_LEFT bytes of its
#      payload to come, F_PHASE of the mask, F_KIND (8 to 10: control, 0: data), F_SIZE of the
#      control payload so far; F_OPEN: is a message in fragments under way?
#   h  the header (14 bytes), the mask (4), the payload of a control frame (125)
#
# -> 0: all was taken; 8, 9, 10: a control frame with that opcode is whole in h; 1: a data frame
# without bytes; a further call goes on behind it; 1002, 1003, 1009: the close code of a frame that
# is wrong.
import micropython

from slotmq.constants import (CODE_PROTOCOL, CODE_SIZE, CODE_TYPE, F_AT, F_CLOSE, F_CONTROL,
    F_DONE, F_HAVE, F_KIND, F_LEFT, F_MASK, F_OPEN, F_PHASE, F_SIZE)


@micropython.viper
def unwrap(state, control, buf, end: int) -> int:
    s = ptr32(state)
    h = ptr8(control)
    b = ptr8(buf)
    at = s[F_AT]
    while at < end:
        left = s[F_LEFT]
        if not left:
            n = s[F_HAVE]
            left = b[at + 1] - 128
            if n or at + 6 > end or b[at] ^ 0x82 or left < 1 or left > 125 or s[F_OPEN]:
                h[n] = b[at]
                at += 1
                n += 1
                s[F_HAVE] = n
                if n > 1:
                    event = int(_begin(state, control, n))
                    if event:
                        s[F_AT] = at
                        return event
                continue
            # a whole header, of the usual kind
            at += 2
            h[F_MASK] = b[at]
            h[F_MASK + 1] = b[at + 1]
            h[F_MASK + 2] = b[at + 2]
            h[F_MASK + 3] = b[at + 3]
            at += 4
            s[F_KIND] = 0
            s[F_PHASE] = 0
        # Move and unmask what is there of the payload.
        n = end - at
        if n > left:
            n = left
        s[F_LEFT] = left - n
        kind = s[F_KIND]
        by = ptr8(int(b) + at)
        at += n
        if kind:
            to = ptr8(int(h) + F_CONTROL + s[F_SIZE])
            s[F_SIZE] = s[F_SIZE] + n
        else:
            to = ptr8(int(b) + s[F_DONE])
            s[F_DONE] = s[F_DONE] + n
        phase = s[F_PHASE]
        s[F_PHASE] = phase + n & 3
        k0 = h[F_MASK + phase]
        k1 = h[F_MASK + (phase + 1 & 3)]
        k2 = h[F_MASK + (phase + 2 & 3)]
        k3 = h[F_MASK + (phase + 3 & 3)]
        if n > 7 and not (int(to) ^ int(by)) & 1:  # two bytes at once
            if int(to) & 1:
                to[0] = by[0] ^ k0
                to = ptr8(int(to) + 1)
                by = ptr8(int(by) + 1)
                n -= 1
                phase = k0
                k0 = k1
                k1 = k2
                k2 = k3
                k3 = phase
            to2 = ptr16(int(to))
            by2 = ptr16(int(by))
            phase = k0 | k1 << 8
            k3 = k2 | k3 << 8
            while n > 3:
                to2[0] = by2[0] ^ phase
                to2[1] = by2[1] ^ k3
                to2 = ptr16(int(to2) + 4)
                by2 = ptr16(int(by2) + 4)
                n -= 4
            to = ptr8(int(to2))
            by = ptr8(int(by2))
        while n > 3:
            to[0] = by[0] ^ k0
            to[1] = by[1] ^ k1
            to[2] = by[2] ^ k2
            to[3] = by[3] ^ k3
            to = ptr8(int(to) + 4)
            by = ptr8(int(by) + 4)
            n -= 4
        if n:
            to[0] = by[0] ^ k0
            if n > 1:
                to[1] = by[1] ^ k1
            if n > 2:
                to[2] = by[2] ^ k2
        if kind and not s[F_LEFT]:
            s[F_AT] = at
            return kind
    s[F_AT] = end
    return 0


# n bytes of a header are in h; -> an event, or 0: it goes on.
@micropython.viper
def _begin(s: ptr32, h: ptr8, n: int) -> int:
    first = h[0]
    kind = first & 15
    size = h[1] & 127
    if not n ^ 2:
        if first & 0x70 or kind > 10 or h[1] < 128:
            return CODE_PROTOCOL
        if kind < F_CLOSE:
            if kind > 2:
                return CODE_PROTOCOL
            if not kind ^ 1:
                return CODE_TYPE
            if s[F_OPEN]:
                if kind:
                    return CODE_PROTOCOL
            elif not kind:
                return CODE_PROTOCOL
        elif first < 128 or size > 125:
            return CODE_PROTOCOL
    need = 6
    if size > 125:
        need = 8 if not size ^ 126 else 14
    if n < need:
        return 0
    least = 0  # a shorter length has a shorter form, which it must have [5.2]
    if not need ^ 8:
        size = (h[2] << 8) | h[3]
        least = 126
    elif need > 8:
        if h[2] > 127:
            return CODE_PROTOCOL
        if h[2] | h[3] | h[4] | h[5] or h[6] > 63:
            return CODE_SIZE
        size = (h[6] << 24) | (h[7] << 16) | (h[8] << 8) | h[9]
        least = 65536
    if size < least:
        return CODE_PROTOCOL
    s[F_HAVE] = 0
    s[F_PHASE] = 0
    s[F_SIZE] = 0
    s[F_LEFT] = size
    i = 0
    while i < 4:
        h[F_MASK + i] = h[need - 4 + i]
        i += 1
    if kind < F_CLOSE:
        s[F_KIND] = 0
        s[F_OPEN] = 1 if first < 128 else 0
        return 0 if size else 1
    s[F_KIND] = kind
    return 0 if size else kind
