# delivery.py - one message that one session is owed.
QUEUED, SENT_1, SENT_2, RELEASED, DONE = 0, 1, 2, 3, 4  # states; SENT_1: at QoS 1


class Delivery:
    """A message for a session, from the moment it is queued until it is done."""

    def __init__(self, msg, qos, required, retain):
        self.msg = msg
        self.qos = qos
        self.required = required  # must it arrive, as long as the session lives?
        self.retain = retain  # the flag that the PUBLISH carries
        self.state = QUEUED
        self.packet_id = 0
        self.sent = False
        self.link = None  # the connection on which it was sent last
        self.first_link = 0  # number of the session's first connection on which it may be sent
        self.times_received = 0  # by the client's application
        self.in_order = True  # does it have a place in the order of messages?
        self.seq = 0  # that place
        self.group = None  # (share name, filter) of a shared subscription
        self.group_slot = 0xFFFF  # its slot in the broker's table
        self.from_retained = False  # is it a retained message for a new subscription?
        self.identifiers = None  # subscription identifiers, sorted; None: not known exactly
        self.subscription_changes = -1  # of the session, when the identifiers were noted
        self.created = 0  # a running number
        self.seen_after_close = 0  # how often it was written after its connection had ended
        self.restored = False  # by a restart, and not sent again since
        self.may_be_refused = False  # was it refused, and is the row like it an older copy?
        self.needed_change = 0  # Model.journal_changes that must be committed before it is sent

    def __repr__(self):
        what = f"<delivery of {self.msg!r} at qos {self.qos}, retain {self.retain}"
        what += f", state {self.state}, id {self.packet_id}, sent {self.sent}"
        return what + f", received {self.times_received}, required {self.required}>"
