# frames_cpython.py - the contract of fast/frames_viper.py on CPython: a payload is unmasked as one
# large number. Allocates.
_F_DONE = 0
_F_AT = 1
_F_HAVE = 2
_F_LEFT = 3
_F_PHASE = 4
_F_KIND = 5
_F_OPEN = 6
_F_SIZE = 7
_F_MASK = 14
_F_CONTROL = 18
_F_CLOSE = 8
_CODE_PROTOCOL = 1002
_CODE_TYPE = 1003
_CODE_SIZE = 1009
_F_MOST = 0x3FFFFFFF


def unwrap(s, h, b, end):
    """See fast/frames_viper.py."""
    at = s[_F_AT]
    while at < end:
        left = s[_F_LEFT]
        if left:
            n = min(left, end - at)
            _unmask(s, h, b, at, n)
            at += n
            if s[_F_KIND] and n == left:
                s[_F_AT] = at
                return s[_F_KIND]
            continue
        n = s[_F_HAVE]
        if not n and at + 6 <= end and b[at] == 0x82 and 128 < b[at + 1] < 254 and not s[_F_OPEN]:
            s[_F_LEFT] = b[at + 1] - 128  # a whole header, of the usual kind
            s[_F_KIND] = s[_F_PHASE] = 0
            h[_F_MASK : _F_MASK + 4] = b[at + 2 : at + 6]
            at += 6
            continue
        h[n] = b[at]
        at += 1
        n += 1
        s[_F_HAVE] = n
        if n < 2:
            continue
        event = _begin(s, h, n)
        if event:
            s[_F_AT] = at
            return event
    s[_F_AT] = end
    return 0


def _unmask(s, h, b, at, n):
    phase = s[_F_PHASE]
    mask = bytes(h[_F_MASK : _F_MASK + 4])
    mask = (mask[phase:] + mask[:phase]) * (n // 4 + 1)
    data = int.from_bytes(b[at : at + n], "little") ^ int.from_bytes(mask[:n], "little")
    if s[_F_KIND]:
        to, into = _F_CONTROL + s[_F_SIZE], h
        s[_F_SIZE] += n
    else:
        to, into = s[_F_DONE], b
        s[_F_DONE] += n
    into[to : to + n] = data.to_bytes(n, "little")
    s[_F_LEFT] -= n
    s[_F_PHASE] = phase + n & 3


def _begin(s, h, n):
    # n bytes of a header are in h; -> an event, or 0: it goes on.
    first = h[0]
    kind = first & 15
    size = h[1] & 127
    if n == 2:
        wrong = _check(s[_F_OPEN], first, kind, h[1])
        if wrong:
            return wrong
    need = 6 if size < 126 else 8 if size == 126 else 14
    if n < need:
        return 0
    if need > 6:
        size = int.from_bytes(h[2 : need - 4], "big")
        if size < (126 if need == 8 else 65536):
            return _CODE_PROTOCOL  # a shorter form is possible [5.2]
        if size > _F_MOST:
            return _CODE_PROTOCOL if h[2] > 127 and need == 14 else _CODE_SIZE
    s[_F_HAVE] = s[_F_PHASE] = s[_F_SIZE] = 0
    s[_F_LEFT] = size
    h[_F_MASK : _F_MASK + 4] = h[need - 4 : need]
    s[_F_KIND] = kind if kind >= _F_CLOSE else 0
    if kind < _F_CLOSE:
        s[_F_OPEN] = int(first < 128)
    return 0 if size else kind if kind >= _F_CLOSE else 1


def _check(is_open, first, kind, second):
    if first & 0x70 or kind > 10 or 2 < kind < _F_CLOSE or second < 128:
        return _CODE_PROTOCOL
    if kind >= _F_CLOSE:
        return _CODE_PROTOCOL if first < 128 or second > 128 + 125 else 0
    if kind == 1:
        return _CODE_TYPE
    return 0 if bool(is_open) == (kind == 0) else _CODE_PROTOCOL
