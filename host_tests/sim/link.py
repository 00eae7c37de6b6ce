# link.py - a connection with what the model knows of it beside the bytes: whose it is, and
# which answers and messages are owed on it.
from slotmq_tools.sim import link

from . import peek

# Packets after which a read ends: what they do is asked of the tables before more is read
CONTROL = ("connect", "subscribe", "unsubscribe")


class Link(link.Link):
    ends_a_read = CONTROL

    def __init__(self, world, number, client, level, weather):
        super().__init__(world, number, client, level, weather)
        self.session = None
        self.attached = self.refused = self.left = self.deaf = self.was_taken = False
        self.due = []  # answers in their order
        self.needs = []  # for each of them: which change must be kept before it leaves
        self.marks = []  # (bytes written, which change was kept then)
        self.last_end = 0  # of the packets that the broker has read
        self.sizes = []  # of those that it read last
        self.aliases = {}
        self.last_seq = 0
        self.last_0 = {}
        self.resumed = False
        self.told = 0
        self.receive_max = 65535
        self.packet_max = 0
        self.waited_ms = -99999  # for a buffer for its long packet
        self.read_before = 0  # bytes read before
        self.begun_ms = 0  # the packet that is cut, or the last whole one
        self.without_ms = 0  # when it had no reassembly buffer
        self.unread_ms = 0  # when the broker had no room for answers to more
        self.was_paused = self.paused_tick = 0  # had it none at the last look, and which tick

    def owe_answers(self, need):
        """What was just handled has been answered; that needs this change to be kept."""
        self.needs += [need] * (len(self.due) - len(self.needs))

    def _whole(self):
        before = self.ends
        if self.read_before <= self.last_end:
            self.begun_ms = self.world.clock.ms
        self.read_before = self.read_total
        found = super()._whole()
        if found:
            self.begun_ms = self.last_activity_ms
        self.sizes = []
        for end, _ in before[: len(found)]:
            self.sizes.append(end - self.last_end)
            self.last_end = end
        return found

    def _carry(self, data):
        super()._carry(data)
        keeper = self.world.keeper
        if keeper and keeper.always:
            waits = peek.waits_to_be_kept(self.world.broker)
            self.marks.append((self.written, keeper.durable, waits))

    def is_early(self, packet, need):
        """Has its first byte left before this change was kept?

        What came and went between two commits is never kept; then the broker has nothing
        to keep at all."""
        if not need or not self.marks:
            return False
        start = self.parsed - packet.size
        while self.marks[0][0] <= start:
            self.marks.pop(0)
        _, durable, waits = self.marks[0]
        return waits and durable < need

    def die(self):
        super().die()
        self.attached = False
