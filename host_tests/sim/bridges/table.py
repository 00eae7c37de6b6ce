# table.py - the sender's table of QoS 1 and 2: what one broker has sent to the other and what has
# been acknowledged, as the bytes between them show it.
#
# A row is made by PUBLISH, goes on with PUBREC and ends with PUBACK or PUBCOMP. A sender that has
# lost its power may have forgotten an acknowledgement that it had read, and with prefixes one that
# bridge/mapping.py had read when the connection was lost. So such a row may come again.
from slotmq_tools import codec

from ..model.model import PromiseBroken

_DUP = 8
_MOST = 20  # that mosquitto takes of MQTT 3.1.1


class Row:
    def __init__(self, number, data, connection):
        self.number = number  # packet id
        self.data = data  # flags without DUP, topic (not of 5.0: an alias), payload
        self.connection = connection  # the last one on which PUBLISH left
        self.released = False  # has PUBREL left?
        self.ended = False


class Table:
    """What one side has sent as the sender, over all connections."""

    def __init__(self, name, events, is_mapped):
        self.name = name
        self.is_mapped = is_mapped
        self.events = events
        self.rows = {}  # packet id: Row
        self.has_rebooted = False
        self.handed_over = set()  # payloads that the other broker has read
        self.level = 4  # of the connection whose packet is looked at
        self.watched = 0  # a type of packets; when one leaves, it is 0 again, and has_left is True
        self.has_left = False

    def rebooted(self):
        self.has_rebooted = True

    def sent(self, first, body, connection):
        """A packet has left."""
        kind = first >> 4
        if kind == self.watched:
            self.watched, self.has_left = 0, True
        if kind == codec.PUBREL:
            row = self.rows.get(codec.two(body, 0))
            if row:
                row.released = True
        elif kind == codec.PUBLISH and first & 6:
            self._sent_publish(first, body, connection)

    def _sent_publish(self, first, body, connection):
        number = codec.two(body, 2 + codec.two(body, 0))
        topic = self._topic(body) if self.level < 5 else None
        data = first & ~_DUP, topic, self._payload(first, body)
        row = self.rows.get(number)
        is_same = row is not None and (row.data[0], row.data[2]) == (data[0], data[2])
        if is_same and None not in (row.data[1], topic):  # a bridge may change its version
            is_same = row.data[1] == topic
        if row is None or (row.ended and not (is_same and first & _DUP)):
            if first & _DUP and not self.has_rebooted and not connection:
                raise self._broken(number, "has DUP, and was never sent")
            self.rows[number] = Row(number, data, connection)
            self._check_count(connection)
            return
        self.events["sent again"] += 1
        if row.ended and not (self.has_rebooted or self.is_mapped):
            raise self._broken(number, "was acknowledged, and is sent again")
        if not is_same:
            raise self._broken(number, "is used again before it was acknowledged")
        if row.connection == connection:
            raise self._broken(number, "is sent twice on one connection")
        if row.released:
            raise self._broken(number, "is sent again after PUBREL")
        if not first & _DUP:
            raise self._broken(number, "is sent again without DUP")
        row.connection = connection
        row.ended = False
        self._check_count(connection)

    def _check_count(self, connection):
        if self.name == "here" and self.level < 5 and len(self.open_ids()) > _MOST:
            rows = [row for row in self.rows.values() if not row.ended]
            count = sum([row.connection == connection for row in rows])
            if count > _MOST:
                raise PromiseBroken(f"the bridge has {count} under way")

    def acknowledged(self, first, body):
        """The sender has read a packet."""
        kind = first >> 4
        row = self.rows.get(codec.two(body, 0)) if 4 <= kind <= 7 else None
        is_refused = kind == codec.PUBREC and body[2:3] >= b"\x80"
        if row and (kind == codec.PUBACK or kind == codec.PUBCOMP or is_refused):
            row.ended = True

    def arrived(self, first, body):
        """The other broker has read a packet of the sender."""
        if first >> 4 == codec.PUBLISH:
            self.handed_over.add(self._payload(first, body))

    def _topic(self, body):
        return body[2 : 2 + codec.two(body, 0)]

    def _payload(self, first, body):
        at = 2 + codec.two(body, 0) + (2 if first & 6 else 0)
        if self.level == 5:
            size, at = codec.varint(body, at)
            at += size
        return body[at:]

    def open_ids(self):
        return [number for number in sorted(self.rows) if not self.rows[number].ended]

    def _broken(self, number, what):
        return PromiseBroken(f"packet id {number} from {self.name} {what}")
