# tls_packets.py - where the packets in what a client gets end. Over TLS each leaves in a record of
# its own: some clients handle one packet for each event of their socket, and do not ask whether
# the record had more (paho's loop_read(), so Home Assistant). Does not allocate.


class Packets:
    """The bytes of one connection: `left` of the packet under way are still to come; `place` is
    what its next byte of length counts, 1, 128 and so on, or 0: its head is complete."""

    def __init__(self):
        self.left = 0
        self.place = 0

    def cut(self, buf, at, end):
        """The next bytes are buf[at:end]; -> the end of the packet under way, or `end`."""
        left = self.left
        place = self.place
        if place or not left:
            while at < end:
                byte = buf[at]
                at += 1
                if not place:
                    place = 1
                    continue
                left += (byte & 127) * place
                place <<= 7
                if byte < 128:
                    place = 0
                    break
            self.place = place
        at += left
        if at > end:
            self.left = at - end
            return end
        self.left = 0
        return at
