# probe.py - while a later address of a bridge is connected: is the first one back? A connection of
# its own says CONNECT there, since a dead broker's address may still accept connections, as that
# of a proxy does. CONNACK is the answer; then DISCONNECT, so that no will is published, and the
# bridge itself moves. Loaded on demand; owns nothing: Bridge has the connection. Allocates.
from slotmq.constants import CONNACK, EAGAIN, HUP, IN, OUT

_EVERY = 600  # tenths of a second between two attempts
# Refusals after which the bridge says CONNECT otherwise: of its protocol level, of its will
_OTHERWISE = (1, 0x84, 0x9A, 0x9B)
_ENOUGH = 7  # bytes of a CONNACK as far as its code, at most


def begin_probe(one):
    """Connect to the first address; events of the socket call go_on_probing()."""
    loop = one.broker.loop
    drop_probe(one)
    one.next_probe = one.broker.now + _EVERY
    try:
        made = one.reach(0, False)
    except (OSError, ValueError):
        return
    if not made:  # a name is being looked up
        one.next_probe = one.broker.now
        return
    one.probe = one.probe_pipe = probe = made[0]
    if one.options.context:
        secure = one.module("bridge.secure")
        one.probe_pipe = secure.Pipe(loop, probe, one.options.context, one.options.addresses[0][0])
    one.probe_rest = one.module("bridge.handshake").connect_packet(one)
    one.probe_answer = b""
    loop.of_stream[probe] = one.owner.index
    loop.poller.register(probe, IN | OUT | HUP)


def go_on_probing(one):
    """The socket has an event. -> True: the other broker lets the bridge in."""
    pipe = one.probe_pipe
    rest = one.probe_rest
    try:
        if rest:
            one.probe_rest = rest = rest[pipe.write(rest, 0, len(rest)) or 0 :]
        if not rest:
            answer = bytearray(_ENOUGH)
            n = pipe.readinto(answer, _ENOUGH)
            one.probe_answer += bytes(answer[: n or 0])
            code = _code(one.probe_answer)
            if n == 0 or code is not None:
                is_back = code == 0 or code in _OTHERWISE
                if is_back:
                    pipe.write(b"\xe0\0", 0, 2)
                drop_probe(one)
                return is_back
    except (OSError, ValueError) as error:
        if not error.args or error.args[0] != EAGAIN:
            drop_probe(one)
            return False
    waits = rest if pipe is one.probe else pipe.waits
    one.broker.loop.poller.modify(one.probe, IN | HUP | (OUT if waits else 0))
    return False


def _code(answer):
    # That of CONNACK; None: it has not come, -1: this is none.
    if answer and answer[0] != CONNACK:
        return -1
    at = 1
    while at < len(answer) and answer[at] & 128 and at < 4:
        at += 1  # to the last byte of the Remaining Length; then there are flags
    return answer[at + 2] if at + 2 < len(answer) else None


def drop_probe(one):
    """Close the connection, if there is one."""
    loop = one.broker.loop
    if one.probe:
        loop.poller.unregister(one.probe)
        del loop.of_stream[one.probe]
        one.probe_pipe.close()
        one.probe = one.probe_pipe = None
