# lwip_layout.py - where lwIP's control block of a connection has snd_buf and snd_queuelen: that
# depends on its version and on how it was built, so it is found out by a write.
#
# Of a connection that holds nothing a write of n bytes makes snd_buf less by n, and snd_queuelen,
# the next 16-bit number, 1 instead of 0. If one place alone has changed so, that is it; else, as
# where an acknowledgement has come meanwhile, the next write tells. Loaded on demand; allocates
# before it writes, so that a MemoryError means that nothing was sent.
from slotmq.platform.runtime import const

_PCB = const(4)
_NUMBERS = const(100)  # of 16 bits, of a control block that are looked at
_WARNING = const(2)


def write(lwip, stream, buf, off, n):
    """stream.write(), and a look at what it has changed."""
    numbers = [0] * _NUMBERS
    pcb = _read(lwip, stream, numbers)
    done = stream.write(buf, off, n)
    if pcb and done and pcb == lwip.mem32[id(stream) + _PCB]:
        _find(lwip, pcb, numbers, done)
    lwip.tries -= 1
    if not lwip.at and not lwip.tries:
        _give_up(lwip.loop.broker)
    return done


def _read(lwip, stream, numbers):
    pcb = lwip.mem32[id(stream) + _PCB]
    for i in range(_NUMBERS if pcb else 0):
        numbers[i] = lwip.mem16[pcb + 2 * i]
    return pcb


def _find(lwip, pcb, before, n):
    found = count = 0
    for i in range(0, _NUMBERS, 2):
        at = pcb + 2 * i
        if before[i] - lwip.mem16[at] == n and before[i + 1] == 0 and lwip.mem16[at + 2] == 1:
            found = i
            count += 1
    if count == 1:
        lwip.most = before[found]
        lwip.at = 2 * found


def _give_up(broker):
    if broker.log_mask & _WARNING:
        text = "lwIP's memory is not bounded: a client that does not read may make others wait."
        try:
            broker.log(_WARNING, text)
        except MemoryError:
            pass  # no reason to write the same bytes again
