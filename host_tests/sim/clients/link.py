# link.py - a connection: the simulated one of tools/sim/link.py, with what the model knows of it.
from slotmq_tools.sim import link

from ..model import tables

# Packets after which a read ends, since the model asks the tables what each of them did
CONTROL = ("connect", "subscribe", "unsubscribe")


class Link(link.Link):
    ends_a_read = CONTROL

    def __init__(self, world, number, client, level, weather):
        super().__init__(world, number, client, level, weather)
        self.session = None
        self.attached = False  # has it a session in the broker?
        self.refused = False  # by CONNACK
        self.resumed = False  # did the broker have the session already?
        self.disconnect_sent = False  # by the client, without its will
        self.ignores_input = False  # does the broker handle no more of its packets?
        self.taken_over = False  # by another connection of the same client
        self.receive_max = 65535
        self.packet_max = 0
        # Of the broker's packets
        self.pending_answers = []  # in their order
        self.needed_changes = []  # of each answer: Model.journal_changes to commit before it
        self.commit_marks = []  # (bytes written, change committed then, was there another?)
        self.aliases = {}  # topic alias -> topic
        self.last_seq = 0  # Delivery.seq of the last message at QoS 1 or 2
        self.last_seq_qos_0 = {}  # (publisher, topic, QoS) -> the same at QoS 0
        # Of the client's packets
        self.last_end = 0  # offset of the end of the last packet that the broker has read
        self.sizes = []  # of the packets of the last read
        self.bytes_read_before = 0  # up to the read before
        # Times, for model/timeouts.py
        self.packet_begun_ms = 0  # of the incomplete packet, or the last whole one
        self.buffer_waited_ms = -99999  # when a long packet waited for a reassembly buffer
        self.without_buffer_ms = 0  # when it had no reassembly buffer
        self.input_paused_ms = 0  # when the broker did not read, since answers had no space
        self.was_paused = self.paused_tick = 0  # at the last check

    def note_answers(self, needed_change):
        """The last packet was answered; this change must be committed before the answer leaves."""
        new = len(self.pending_answers) - len(self.needed_changes)
        self.needed_changes += [needed_change] * new

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
        """Did the first byte of the packet leave before this change was committed?

        Not if nothing waited for a commit then: what comes and goes between two commits is never
        written."""
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
