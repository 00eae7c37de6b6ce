# path_viper.py - the fast path for packets that need no decision, on MicroPython, in viper:
# PUBLISH whose receivers are cached and have space, PUBACK, PUBREC, PUBCOMP, the usual
# PUBREL, PINGREQ. fast_path() handles a run of them in the receive buffer and stops at the
# first other one, which protocol/dispatch.py handles. Nothing here allocates.
import micropython

from slotmq.constants import (BYTES_IN, CLOCK, CONNECTED, C_BUFFERED, C_COUNTS, C_LAST_ACTIVITY,
    C_LEVEL, C_REASSEMBLY, C_SESSION, C_STATE, C_TX, C_TX_END, C_TX_LIMIT, D_WINDOW, END, FAST_MAX,
    FAST_READ, FLAGS, FREE_BLOCKS, IDS_UNSAVED, IN_USE, MOST_IDS, M_ARENA_STATE, M_COUNT, M_REFS,
    NONE, NOW, PACKETS_IN, PACKETS_OUT, PACKET_ID, PAYLOAD, PKT, POOL, PUBLISHES, PUBLISH_IN,
    QUOTA_BLOCKS, QUOTA_SLOTS, R_END, R_FIRST, R_MID, SENDERS, SENDERS_WIDTH, SIZE, STATS, S_CONN,
    S_DIRTY, S_IDS, S_IDS_HIGH, S_ID_COUNT, S_MOST, S_PROGRESS, S_RECEIVED, TOPIC, TOPIC_LEN)
from slotmq.fast.bytes_viper import find_route
from slotmq.fast.deliveries_viper import acked, fan
from slotmq.fast.messages_viper import place, put_ack, store

# Positions in rows of tables/


@micropython.viper
def may_read(o: ptr32, conn: int) -> int:
    # How many bytes may be read from a connected client that the fast path can serve; 0: ask
    # dispatch.readable. Notes the activity.
    if ptr8(int(o) - o[C_STATE])[conn] ^ CONNECTED or ptr32(int(o) - o[C_BUFFERED])[conn]:
        return 0
    ptr32(int(o) - o[C_LAST_ACTIVITY])[conn] = ptr32(int(o) - o[CLOCK])[NOW]
    space = ptr32(int(o) - o[C_TX_LIMIT])[conn] - ptr32(int(o) - o[C_TX_END])[conn]
    most = ptr32(int(o) - o[C_REASSEMBLY])[FAST_READ]
    if space > most:
        return most
    return space if space > 0 and space > most >> 2 else 0


# Handles packets of buf[at:end] of a connected client; -> the offset of the first one that
# was not handled.
@micropython.viper
def fast_path(c, conn: int, buf, at: int, end: int) -> int:
    o = ptr32(c)
    b = ptr8(buf)
    p = ptr32(int(o) - o[PKT])
    stats = ptr32(int(o) - o[STATS])
    stats[BYTES_IN] = stats[BYTES_IN] - at
    while at + 1 < end:
        first = b[at]
        answer = 0
        n = 4
        if first >> 4 == 3:
            n = int(publish(c, conn, buf, at, end))
            if not n:
                break
            if first & 6:
                answer = ((first & 6) << 3) + 0x30
            stats[PUBLISH_IN] = stats[PUBLISH_IN] + 1
        elif first == 0xC0 and not b[at + 1]:
            answer = 0xD0
            n = 2
        else:
            if at + 4 > end or b[at + 1] ^ 2:
                break
            packet_id = (b[at + 2] << 8) | b[at + 3]
            p[PACKET_ID] = packet_id
            session = ptr16(int(o) - o[C_SESSION])[conn]
            if first == 0x62:
                if not o[S_MOST]:
                    break
                ids = ptr16(int(o) - o[S_IDS] + 2 * session * o[S_RECEIVED])
                counts = ptr16(int(o) - o[S_ID_COUNT])
                k = counts[session]
                while k:
                    k -= 1
                    if not ids[k] ^ packet_id:
                        dirty = ptr8(int(o) - o[S_DIRTY])
                        dirty[session] = dirty[session] | 2
                        ptr32(int(o) - o[S_IDS_HIGH])[IDS_UNSAVED] = 1
                        counts[session] = counts[session] - 1
                        ids[k] = ids[counts[session]]
                        answer = 0x70
                        break
                if not answer:
                    break
            else:
                if first == 0x50:
                    answer = 0x62
                elif first ^ 0x40 and first ^ 0x70:
                    break
                k = (first >> 4) - 3
                if not int(acked(c, session, packet_id, k - (k >> 2))) ^ NONE:
                    break  # an id that is unknown, acknowledged again, or waits for another packet
                ptr32(int(o) - o[S_PROGRESS])[session] = ptr32(int(o) - o[CLOCK])[NOW]
        at += n
        if answer:
            put_ack(c, conn, answer, p[PACKET_ID])
            stats[PACKETS_OUT] = stats[PACKETS_OUT] + 1
        stats[PACKETS_IN] = stats[PACKETS_IN] + 1
    stats[BYTES_IN] = stats[BYTES_IN] + at
    return at


@micropython.viper
def publish(c, conn: int, buf, start: int, end: int) -> int:
    # The PUBLISH at buf[start]: QoS 0 is copied to all its receivers, QoS 1 and 2 is stored and
    # queued for each; -> its length. 0, and nothing is changed: it is incomplete, malformed,
    # retained or a duplicate, has properties, its topic begins with $, its route is not cached,
    # the client must be asked, a receiver has no space, one gets QoS 1 or 2 as QoS 0, or version 5
    # wants a reason code, since there is none.
    o = ptr32(c)
    b = ptr8(buf)
    flags = b[start] & 15
    length = b[start + 1]
    at = start + 2
    if flags & 9 or not flags ^ 6:
        return 0
    if length >> 7:
        if at >= end:
            return 0
        length = (length & 127) | (b[at] << 7)
        at += 1
        if length > 16383 or length < 128:
            return 0
    stop = at + length
    n = stop - start
    p = ptr32(int(o) - o[PKT])
    if stop > end or length < 3 or n > p[FAST_MAX]:
        return 0
    size = (b[at] << 8) | b[at + 1]
    at += 2
    end = at + size  # of the topic
    if not size or end > stop or not b[at] ^ 36:
        return 0
    slot = int(find_route(c, buf, at, size))
    if slot < 0:
        return 0
    length = o[SENDERS_WIDTH]
    if length:
        length = slot * length + (conn >> 3)
        if not (ptr8(int(o) - o[SENDERS])[length] >> (conn & 7)) & 1:
            return 0
    p[TOPIC] = at
    p[TOPIC_LEN] = size
    p[END] = stop
    if flags:
        if end + 2 > stop:
            return 0
        p[PACKET_ID] = (b[end] << 8) | b[end + 1]
        end += 2
    at = ptr16(int(o) - o[R_FIRST])[slot]
    last = ptr16(int(o) - o[R_END])[slot]
    level = ptr8(int(o) - o[C_LEVEL])[conn] ^ 5
    size = last  # where the receivers of the other version begin, or end
    if not level:
        if end == stop or b[end] or flags and not at ^ last:
            return 0
        size = at
        end += 1
    if flags:
        p[FLAGS] = flags
        p[PAYLOAD] = end
        return n if int(accept(c, conn, slot, buf)) else 0
    if ptr16(int(o) - o[R_MID])[slot] ^ size:
        return n if int(translate(c, slot, buf, start, level)) else 0
    return n if int(place(c, at, last, buf, start, -n)) == last else 0


@micropython.viper
def translate(c, slot: int, buf, start: int, level: int) -> int:
    # The QoS 0 PUBLISH at buf[start], which publish() has scanned, to receivers of both versions,
    # or of the other one only: these get its end, and then the head of their version. 0: one has
    # no space, and nothing is changed, or a receiver of version 5 needs other code. level: 0 if it
    # is of version 5.
    o = ptr32(c)
    p = ptr32(int(o) - o[PKT])
    tx_end = ptr32(int(o) - o[C_TX_END])
    stop = p[END]
    i = ptr16(int(o) - o[R_FIRST])[slot]
    mid = ptr16(int(o) - o[R_MID])[slot]
    end = ptr16(int(o) - o[R_END])[slot]
    rest = stop - p[TOPIC] + 3  # the Remaining Length of the other version
    n = start - stop
    if mid > end:
        return 0
    # The others are i..end, those of the same version k..last
    k = mid
    last = end
    end = mid
    if level:
        k = i
        i = mid
        end = last
        last = mid
    else:
        rest -= 2
    size = rest + 2 + (1 if rest >> 7 else 0)
    first = i
    conn = NONE
    while i < end and not conn ^ NONE:
        conn = ptr16(int(o) - o[S_CONN])[ptr16(int(o) - o[POOL])[i] >> 2]
        i += 1
    # One gets it from the receive buffer, those behind it from its outgoing buffer
    if rest >> 14 or int(place(c, first, i, buf, stop - size, -size)) ^ i:
        return 0
    failed = 0
    if conn ^ NONE:
        d = int(o) - o[C_TX] + tx_end[conn] - size
        done = d - int(o)  # counted from the table, which is passed instead of tx
        d += 1
        if rest >> 7:
            ptr8(d)[0] = rest | 128
            d += 1
        ptr8(d)[0] = rest >> 7 if rest >> 7 else rest
        s = int(ptr8(buf)) + p[TOPIC] - 2
        topic_end = s + p[TOPIC_LEN] + 2
        while s < topic_end:
            d += 1
            ptr8(d)[0] = ptr8(s)[0]
            s += 1
        if level:
            ptr8(d)[1] = 0
        if i ^ end and int(place(c, i, end, c, done, -size)) ^ end:
            failed = 1
            end = i
    if not failed and k ^ last:
        failed = int(place(c, k, last, buf, start, n)) ^ last
    if failed:
        counts = ptr32(int(o) - o[C_COUNTS])
        while first < end:
            conn = ptr16(int(o) - o[S_CONN])[ptr16(int(o) - o[POOL])[first] >> 2]
            first += 1
            if conn ^ NONE:
                tx_end[conn] = tx_end[conn] - size
                counts[PUBLISHES] = counts[PUBLISHES] - 1
    return 0 if failed else 1


@micropython.viper
def accept(c, conn: int, slot: int, buf) -> int:
    # A QoS 1 or 2 PUBLISH, which publish() has scanned. 1: it is stored and queued for all, and
    # must be acknowledged; 0: not by the fast path, and nothing is changed.
    o = ptr32(c)
    p = ptr32(int(o) - o[PKT])
    qos = p[FLAGS] >> 1
    ids = ptr16(int(o) - o[S_IDS])
    counts = ptr16(int(o) - o[S_ID_COUNT])
    session = ptr16(int(o) - o[C_SESSION])[conn]
    at = session * o[S_RECEIVED]
    if not p[PACKET_ID]:
        return 0
    if qos ^ 1:
        conn = at + counts[session]
        while at < conn:
            if not ids[at] ^ p[PACKET_ID]:
                return 0  # a duplicate, which must not be recorded as handled by the fast path
            at += 1
        if counts[session] >= o[S_MOST]:
            return 0
    # Indexes into the route pool, counted from the table, which is passed instead of the pool.
    at_pool = (int(o) - o[POOL] - int(o)) >> 1
    i = ptr16(int(o) - o[R_FIRST])[slot] + at_pool
    end = ptr16(int(o) - o[R_END])[slot] + at_pool
    if i < end:
        if int(fan(c, c, i, end, -1, qos)) ^ end:
            return 0
        # If a session may exceed its quota, delivery/routing.py checks it.
        size = p[END] - p[PAYLOAD]
        window = ptr32(int(o) - o[D_WINDOW])
        arena = ptr32(int(o) - o[M_ARENA_STATE])
        if ptr32(int(o) - o[M_COUNT])[IN_USE] >= window[QUOTA_SLOTS]:
            return 0
        if (arena[FREE_BLOCKS] - window[QUOTA_BLOCKS]) * arena[SIZE] - 2 < size + p[TOPIC_LEN]:
            return 0
        msg = int(store(c, buf, p[TOPIC], p[TOPIC_LEN], p[PAYLOAD], size, qos << 1))
        if not msg ^ NONE:
            return 0
        fan(c, c, i, end, msg, qos)
        refs = ptr16(int(o) - o[M_REFS])
        refs[msg] = refs[msg] - 1
    if qos ^ 1:
        ids[at] = p[PACKET_ID]
        at = counts[session] + 1
        counts[session] = at
        dirty = ptr8(int(o) - o[S_DIRTY])
        dirty[session] = dirty[session] | 2
        high = ptr32(int(o) - o[S_IDS_HIGH])
        high[IDS_UNSAVED] = 1
        if at > high[MOST_IDS]:
            high[MOST_IDS] = at
    return 1
