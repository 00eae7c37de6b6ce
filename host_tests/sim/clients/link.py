# link.py - a connection with what the model knows of it beside the bytes: whose it is, and
# which answers and messages are owed on it.
from slotmq_tools.sim import link

from ..model import tables

# Packets after which a read ends: what they do is asked of the tables before more is read
CONTROL = ("connect", "subscribe", "unsubscribe")


class Link(link.Link):
    ends_a_read = CONTROL

    def __init__(self, world, number, client, level, weather):
        super().__init__(world, number, client, level, weather)
        self.session = None
        self.attached = self.refused = self.disconnect_sent = self.ignores_input = (
            self.taken_over
        ) = False
        self.pending_answers = []  # answers in their order
        self.needed_changes = []  # for each of them: which change must be kept before it leaves
        self.commit_marks = []  # (bytes written, which change was kept then)
        self.last_end = 0  # of the packets that the broker has read
        self.sizes = []  # of those that it read last
        self.aliases = {}
        self.last_seq = 0
        self.last_seq_qos_0 = {}
        self.resumed = False
        self.told = 0
        self.receive_max = 65535
        self.packet_max = 0
        self.buffer_waited_ms = -99999  # for a buffer for its long packet
        self.bytes_read_before = 0  # bytes read before
        self.packet_begun_ms = 0  # the packet that is cut, or the last whole one
        self.without_buffer_ms = 0  # when it had no reassembly buffer
        self.input_paused_ms = 0  # when the broker had no room for answers to more
        self.was_paused = self.paused_tick = 0  # had it none at the last look, and which tick

    def note_answers(self, needed_change):
        """What was just handled has been answered; that needs this change to be kept."""
        self.needed_changes += [needed_change] * (
            len(self.pending_answers) - len(self.needed_changes)
        )

    def _whole(self):
        before = self.ends
        if self.bytes_read_before <= self.last_end:
            self.packet_begun_ms = self.world.clock.ms
        self.bytes_read_before = self.read_total
        found = super()._whole()
        if found:
            self.packet_begun_ms = self.last_activity_ms
        self.sizes = []
        for end, _ in before[: len(found)]:
            self.sizes.append(end - self.last_end)
            self.last_end = end
        return found

    def _carry(self, data):
        super()._carry(data)
        storage = self.world.storage
        if storage and storage.always:
            waits = tables.has_uncommitted_changes(self.world.broker)
            self.commit_marks.append((self.written, storage.committed_change, waits))

    def is_early(self, packet, needed_change):
        """Has its first byte left before this change was kept?

        What came and went between two commits is never kept; then the broker has nothing
        to keep at all."""
        if not needed_change or not self.commit_marks:
            return False
        start = self.parsed - packet.size
        while self.commit_marks[0][0] <= start:
            self.commit_marks.pop(0)
        _, committed_change, waits = self.commit_marks[0]
        return waits and committed_change < needed_change

    def die(self):
        super().die()
        self.attached = False
