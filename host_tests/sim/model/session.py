# session.py - what the model knows of one session: its subscriptions, and all deliveries that
# it is or was owed.
from ..messages import matches
from .delivery import DONE


class Subscription:
    def __init__(self, topic_filter, group):
        self.filter = topic_filter
        self.group = group  # share name, or None
        self.history = []  # (QoS, identifier) of each SUBSCRIBE

    def update(self, qos, options, identifier, turn):
        """A SUBSCRIBE was granted, perhaps not the first one."""
        self.qos = qos
        self.no_local = options & 4
        self.as_published = options & 8
        self.identifier = identifier
        self.turn = turn
        self.history.append((qos, identifier))

    def copy(self):
        """Return the subscription as it is now, without its history."""
        made = Subscription(self.filter, self.group)
        options = self.no_local | self.as_published
        made.update(self.qos, options, self.identifier, self.turn)
        return made


class Scan:
    """The retained messages that a new subscription is owed."""

    def __init__(self, subscription, link):
        self.subscription = subscription
        self.since = len(subscription.history) - 1  # the first entry of the history that counts
        self.link = link
        self.open = True  # does the broker's scan still run?
        self.expected = {}  # topic -> the message that must come; None: it need not
        self.possible = {}  # topic -> all messages that may come


class Session:
    def __init__(self, name, level, creations):
        self.name = name
        self.creations = creations  # [running number of deliveries], shared by all sessions
        self.level = level
        self.user = None  # its user name
        self.link = None
        self.links = 0  # number of connections that it has had
        self.packet_max = 0  # Maximum Packet Size of its last connection
        self.clean = True  # does it end with its connection?
        self.expiry_ms = None  # how long it outlives its connection; None: for ever
        self.disconnected_ms = 0  # when its connection ended
        self.disconnected_at = 0  # the same by the broker's clock, in tenths of a second
        self.will = None
        self.will_delay = 0
        self.will_due = None  # ms, after its connection has ended
        self.subscriptions = []
        self.removed = []  # subscriptions that ended or changed in this turn, as they were
        self.subscription_changes = 0
        self.queue = []  # deliveries at QoS 1 and 2 that are not done
        self.in_flight = {}  # packet id -> delivery
        self.deliveries = {}  # message key -> [delivery], done or not
        self.scans = []
        self.retained_received = {}  # (topic, message key) -> times, for new subscriptions
        self.received = {}  # QoS 2 packet id -> the message until PUBREL, or None
        self.has_ended = False
        self.client_forgot = False  # has the client discarded its half of the session?
        # For quotas.py
        self.slots_at_disconnect = None  # message slots that it used then
        self.slots_before = 0  # number of message slots at the last check
        self.deliveries_at_disconnect = None  # number that it had then, if these were few
        # For restarts
        self.was_connected = False  # did the power cut end its connection?
        self.finished = []  # deliveries that were done since the last commit
        self.may_return = []  # deliveries that were done, and may be there again

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
        """The delivery was acknowledged or dropped."""
        delivery.state = DONE
        if delivery in self.queue:
            self.queue.remove(delivery)
            self.finished.append(delivery)
        if self.in_flight.get(delivery.packet_id) is delivery:
            del self.in_flight[delivery.packet_id]

    def make_qos_0_optional(self):
        """QoS 0 messages that have not arrived may be lost, since the connection has ended."""
        for row in self.deliveries.values():
            for delivery in row:
                if not delivery.qos and not delivery.times_received:
                    delivery.required = False

    def missing_deliveries(self):
        """Return what must have arrived by now and has not."""
        found = []
        for row in self.deliveries.values():
            missing = [one for one in row if one.required and not one.times_received]
            found += [one for one in missing if not self._was_copy_received(one, row)]
        found.sort(key=lambda delivery: delivery.msg.number)
        return found

    def _was_copy_received(self, delivery, row):
        """May the packet that arrived have been attributed to an optional copy of this delivery?

        If the client subscribed again meanwhile, the packet has other identifiers or none."""
        if delivery.subscription_changes == self.subscription_changes:
            return False
        for one in row:
            is_copy = (one.qos, one.retain) == (delivery.qos, delivery.retain)
            if is_copy and one.times_received and not one.required:
                return True
        return False
