# lwip_layout.py - finds the offsets of snd_buf and snd_queuelen in lwIP's control block of a
# connection by a write: they depend on lwIP's version and build.
#
# On a connection that uses nothing, a write of n bytes lowers snd_buf by n and raises
# snd_queuelen, the next 16-bit number, from 0 to 1. If exactly one pair has changed so, it is
# found; else, for instance if an acknowledgement came meanwhile, the next write tries again.
# Loaded on demand; allocates before it writes, so that a MemoryError means that nothing was sent.
from slotmq.constants import PCB, WARNING

_NUMBERS = 100  # 16-bit numbers of a control block that are compared


def write(lwip, stream, writer, more, buf, off, n):
    """writer.write(), which writes as many bytes as it returns, and `more`, to the stream; and a
    comparison of the control block before and after."""
    numbers = [0] * _NUMBERS
    pcb = _read(lwip, stream, numbers)
    done = writer.write(buf, off, n)
    if pcb and done and pcb == lwip.mem32[id(stream) + PCB]:
        _find(lwip, pcb, numbers, done + more)
    lwip.tries -= 1
    if not lwip.at and not lwip.tries:
        _give_up(lwip.loop.broker)
    return done


def _read(lwip, stream, numbers):
    pcb = lwip.mem32[id(stream) + PCB]
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
    if broker._log_mask & WARNING:
        text = "lwIP's memory is not bounded: a client that does not read may make others wait."
        try:
            broker.log(WARNING, text)
        except MemoryError:
            pass  # the bytes are sent: the caller must not repeat the write
