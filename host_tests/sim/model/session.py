# session.py - what the model knows of one session: its subscriptions, and every message
# that it is or was owed.
from ..messages import matches

QUEUED, SENT_1, SENT_2, RELEASED, DONE = 0, 1, 2, 3, 4


class Subscription:
    def __init__(self, topic_filter, group):
        self.filter = topic_filter
        self.group = group  # share name, or None
        self.history = []  # (QoS, identifier), of each time that it was subscribed
        self.gone = 0  # turn in which it ended

    def update(self, qos, options, identifier, turn):
        """It is subscribed, perhaps again."""
        self.qos = qos
        self.no_local = options & 4
        self.as_published = options & 8
        self.identifier = identifier
        self.turn = turn
        self.history.append((qos, identifier))

    def before(self):
        """As it is now, for what is looked at when it may have changed."""
        old = Subscription(self.filter, self.group)
        options = self.no_local | self.as_published
        old.update(self.qos, options, self.identifier, self.turn)
        old.gone = 1
        return old


class Delivery:
    """One message for one session, from the moment it is queued until it is done."""

    def __init__(self, msg, qos, required, retain):
        self.msg = msg
        self.qos = qos
        self.required = required  # must it arrive, as long as the session lives?
        self.retain = retain  # the flag that it carries
        self.state = QUEUED
        self.packet_id = 0
        self.sent = False
        self.link = None  # where it was sent last
        self.first_link = 0  # the first connection of the session that it may be sent on
        self.times_received = 0  # times that the application was given it
        self.in_order = True  # does its place in the order count?
        self.seq = 0
        self.group = None  # (share name, filter), where it came by one
        self.group_slot = 0xFFFF  # the broker's
        self.from_retained = False  # given to a new subscription
        self.identifiers = None  # sorted; None: not known exactly
        self.subscription_changes = -1  # of the subscriptions, when the identifiers were noted
        self.created = 0
        self.seen_after_close = 0  # how often it was seen behind the end of its connection
        self.restored = False  # after a reboot, and not sent again yet
        self.may_be_refused = False  # was it refused, and is the row like it another's?
        self.needed_change = (
            0  # must be kept before it is sent: model.journal_changes when it was queued
        )

    def __repr__(self):
        what = f"<owed {self.msg!r} at qos {self.qos}, retain {self.retain}"
        what += f", state {self.state}, id {self.packet_id}, sent {self.sent}"
        return what + f", got {self.times_received}, sure {self.required}>"


class Scan:
    """The retained messages that a new subscription is owed."""

    def __init__(self, subscription, link):
        self.subscription = subscription
        self.since = len(subscription.history) - 1  # how it was subscribed before is no matter
        self.link = link
        self.open = True
        self.expected = {}  # topic -> the message that must come, or None where that is not sure
        self.possible = {}  # topic -> messages that may come


class Session:
    def __init__(self, name, level, creations):
        self.name = name
        self.creations = creations
        self.level = level
        self.link = None
        self.links = 0
        self.packet_max = 0  # of its last connection
        self.clean = True  # ends with its connection
        self.expiry_ms = None  # how long it outlives its connection, None: for ever
        self.disconnected_ms = self.disconnected_at = (
            0  # when its connection ended, and as the broker counts
        )
        self.will = None
        self.will_delay = 0
        self.will_due = None  # ms, once its connection has ended
        self.subscriptions = []
        self.removed = []  # subscriptions that ended in this turn
        self.subscription_changes = 0
        self.queue = []  # Owed at QoS 1 and 2, not done
        self.in_flight = {}  # packet id -> Owed
        self.deliveries = {}  # message key -> [Owed]
        self.scans = []
        self.slots_at_disconnect = None  # message slots that it held when its connection ended
        self.slots_before = 0  # message slots that it held at the last look
        self.deliveries_at_disconnect = None  # deliveries that it held then, if these were few
        self.retained_received = {}
        self.received = {}  # packet id -> the message held, or None
        self.has_ended = False
        self.client_forgot = False  # has its client forgotten what it knew?
        # For reboots
        self.was_connected = False  # has the power cut ended its connection?
        self.finished = []  # Owed that are done, since the journal was written last
        self.may_return = []

    def subscription(self, topic_filter, group):
        for found in self.subscriptions:
            if found.filter == topic_filter and found.group == group:
                return found
        return None

    def matching(self, topic):
        return [found for found in self.subscriptions if matches(found.filter, topic)]

    def add_delivery(self, delivery):
        delivery.first_link = self.links if self.link else self.links + 1
        self.creations[0] = delivery.created = self.creations[0] + 1
        self.deliveries.setdefault(delivery.msg.key(), []).append(delivery)
        if delivery.qos:
            self.queue.append(delivery)

    def finish(self, delivery):
        """Acknowledged, or dropped."""
        delivery.state = DONE
        if delivery in self.queue:
            self.queue.remove(delivery)
            self.finished.append(delivery)
        if self.in_flight.get(delivery.packet_id) is delivery:
            del self.in_flight[delivery.packet_id]

    def make_qos_0_optional(self):
        """The connection is gone: what it had taken at QoS 0 may be lost."""
        for row in self.deliveries.values():
            for delivery in row:
                if not delivery.qos and not delivery.times_received:
                    delivery.required = False

    def missing_deliveries(self):
        """What must have arrived by now and has not."""
        found = []
        for row in self.deliveries.values():
            missing = [
                delivery for delivery in row if delivery.required and not delivery.times_received
            ]
            found += [
                delivery for delivery in missing if not self._was_copy_received(delivery, row)
            ]
        found.sort(key=lambda delivery: delivery.msg.number)
        return found

    def _was_copy_received(self, delivery, row):
        """Was what came put down to a copy of it, of which nobody is sure?

        Who subscribed anew meanwhile gets it with other identifiers, or with none."""
        if delivery.subscription_changes == self.subscription_changes:
            return False
        wanted = delivery.qos, delivery.retain
        return [
            one
            for one in row
            if one.times_received and not one.required and (one.qos, one.retain) == wanted
        ]
