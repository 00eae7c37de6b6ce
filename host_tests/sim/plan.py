# plan.py - what a seed decides in advance: the broker's limits and settings, the weather of the
# network, the faults, and the clients.
from slotmq import Limits, Settings
from slotmq_tools.sim.link import ALL, Weather
from slotmq_tools.sim.machine import PERIOD
from slotmq_tools.sim.numbers import Numbers

from .messages import DEEP, EVERYTHING, FILTERS, TOPICS

# The medium of the journal (None: no journal), and after how many operations a power cut comes
MEDIA = (None, "flash", "flash", "flash", "littlefs", "littlefs", "host", "host")
CUTS = {"flash": (2, 12, 40), "littlefs": (2, 30, 100), "host": (2, 30, 100)}
CUTS["fat"] = CUTS["littlefs"]
CUTS["chip"] = (2, 50, 300)  # operations of the chip below a real littlefs
REBOOTS = ("off", "stop", "stop", "cut", "cut", "cut")


class Plan:
    """The decisions of one seed."""

    def __init__(self, seed):
        numbers = self.numbers = Numbers(seed, 1)
        self.tight = not numbers.one_in(4)
        self.limits = _tight(numbers) if self.tight else _roomy(numbers)
        self.settings = _settings(numbers, self.limits)
        if self.tight:
            # A message that is sent twice on one connection is acknowledged twice. With few
            # slots its packet id would be in use again by then.
            self.settings.retry_interval = 0
        self.clock_base = numbers.choice((0, PERIOD - 500, PERIOD - 5000, PERIOD - 20000, 77))
        self.has_hook = Numbers(seed, 5).one_in(8)  # see Hooks in world.py
        self.has_rules = Numbers(seed, 7).one_in(3)
        if self.has_rules:
            self.settings.acl_file = "rules"  # rights.file_of() has them
            self.settings.allow_anonymous = True
        # Do most packets suit the fast path, and subscriptions seldom change?
        self.is_plain = Numbers(seed, 9).one_in(3)
        # And have these identifiers, or groups, of clients that do not publish?
        self.with_options = self.is_plain and Numbers(seed, 11).one_in(2)
        if self.with_options:
            self.tight = self.has_rules = False
            self.limits = _roomy(Numbers(seed, 11))
            self.settings.acl_file = None
        if self.is_plain:
            self.settings.upgrade_outgoing_qos = self.settings.queue_qos0_messages = False
            self.settings.allow_duplicate_messages = False
            self.settings.message_size_limit = 0
            self.settings.max_topic_alias = 65535 if self.with_options else 0
        # Are there topics longer than the outgoing buffers, and packets of each size around them?
        self.has_long = not self.is_plain and Numbers(seed, 13).one_in(4)
        if self.has_long:
            largest = max(512, self.limits.max_packet)
            more = {"tx_bytes": 80, "topic_bytes": 240, "max_packet": largest}
            self.limits = self.limits.replaced(more)
        self.faults = numbers.choice((0, 1, 1, 2))  # how often connections are lost
        self.bad_weather = numbers.choice((0, 1, 1, 2))
        self.one_packet = self.settings.when_full["messages"] == "disconnect" or numbers.one_in(5)
        numbers.one_in(5)  # unused; without it all seeds would be others
        # Do clients of version 5 subscribe to other topics than the rest?
        self.versions_apart = numbers.one_in(4)
        self.sharing = numbers.choice((0, 20, 60))  # percentage of shared subscriptions
        self.times = numbers.choice(((1,), (1, 1, 30), (1, 10, 100, 100, 250), (1, 1, 1, 1200)))
        if self.settings.retry_interval:
            self.times = (1, 50, 250, 600)
        count = numbers.between(3, self.limits.connections + 2)
        self.clients = [ClientPlan(seed, index, self) for index in range(min(count, 8))]

    def choose_faults(self, numbers, steps, where):
        """Choose the medium of the journal and its faults.

        where: "littlefs" is MicroPython's own, "fat" a model of FAT, "" neither."""
        self.real_littlefs = where == "littlefs"
        self.medium = numbers.choice((where,) if where else MEDIA)
        self.always = not numbers.one_in(5)
        self.autosave = numbers.choice((0, 1, 5, 30, 1800))  # seconds; 0: at an orderly stop only
        self.rots = self.medium is not None and numbers.one_in(10)
        self.block_bytes = numbers.choice((1024, 4096))
        self.spare_blocks = numbers.choice((0, 1, 3))
        self.spare_bytes = numbers.choice((100, 4000, 30000))
        self.fills = ()  # (step when the file system gets full, step when not, bytes)
        if self.medium in ("littlefs", "host") and numbers.one_in(6):
            # Step 0 is before the first start.
            first = 0 if numbers.one_in(3) else 1 + numbers.below(steps)
            self.fills = (first, first + numbers.below(steps), numbers.choice((0, 300, 5000)))
        self.reboots = []
        for _ in range(numbers.choice((1, 1, 2, 3))):
            kind = numbers.choice(REBOOTS) if self.medium else "off"
            self.reboots.append((1 + numbers.below(steps), kind))
        self.reboots.sort()
        self.quiet = numbers.choice((0, 0, 0, 80, 400))  # idle turns before each

    def choose_rule_changes(self, numbers, steps):
        """At which steps, or soon after them, the rules are read again and are others."""
        changes = numbers.choice((0, 1, 3, 8)) if self.has_rules else 0
        self.rule_changes = sorted([1 + numbers.below(steps) for _ in range(changes)])

    def configure_again(self, numbers):
        """Some settings may have changed at a reboot."""
        if not numbers.one_in(3):
            return
        settings = self.settings
        settings.max_inflight_messages = numbers.choice((0, 0, 1))
        settings.queue_qos0_messages = numbers.one_in(5)
        settings.persistent_client_expiration = numbers.choice((0, 0, 20))
        settings.when_full["messages"] = numbers.choice(("drop_newest", "drop_oldest"))
        settings.when_full["deliveries"] = numbers.choice(("drop_newest", "drop_oldest"))

    def cut_after(self, numbers):
        """Choose after how many operations of the medium the power is cut."""
        most = CUTS["chip" if self.real_littlefs else self.medium]
        return 1 + numbers.below(numbers.choice(most))

    def weather(self, numbers):
        """Choose the weather of one link."""
        found = Weather()
        found.one_packet = self.one_packet
        if not self.bad_weather or numbers.one_in(3):
            return found
        found.reads = numbers.choice((ALL, ALL, 300, 40, 9, 2))
        found.writes = numbers.choice((ALL, ALL, 300, 40, 9, 2))
        found.capacity = numbers.choice((ALL, ALL, 2000, 700, 100))
        if self.bad_weather > 1:
            found.not_now = numbers.choice((0, 5, 30))
            found.no_memory = numbers.choice((0, 5, 30))
        return found


class ClientPlan:
    """The identity and the behaviour of a client. Probabilities are percentages."""

    def __init__(self, seed, index, plan):
        numbers = Numbers(seed, 20 + index)
        settings = plan.settings
        self.index = index
        self.name = b"client%d" % index
        self.level = numbers.choice(
            (3, 4, 4, 4, 5, 5, 5) if settings.mqtt_versions == 5 else (3, 4)
        )
        self.is_clean = numbers.choice((0, 5, 20, 50, 100))
        self.keep_alive = numbers.choice((0, 0, 0, 3, 10))
        self.expiry = numbers.choice((0, 1, 8, 600, 100000))
        self.window = numbers.choice((1, 2, 4, 8, 16))
        self.receive_max = numbers.choice((0, 0, 1, 3, 20))
        self.packet_max = numbers.choice((0, 0, 0, 0, 150))
        self.alias_max = numbers.choice((0, 1, 3))
        self.wills = numbers.choice((0, 30, 80))
        self.publishes = numbers.choice((5, 20, 40, 40, 70))
        self.subscribes = numbers.choice((2, 5, 10))
        self.retains = numbers.choice((0, 5, 30))
        self.expires = numbers.choice((0, 0, 20)) if self.level == 5 else 0
        self.lazy = numbers.choice((0, 0, 30, 80))  # about acknowledging
        self.reads = numbers.choice((ALL, ALL, ALL, 200, 30))  # bytes at each step
        self.disconnects = plan.faults * numbers.choice((0, 1, 3, 6))  # times in 300 steps
        self.qos = numbers.choice(((0, 1, 2), (0, 0, 1), (1, 2), (2,), (1,)))
        if numbers.one_in(10):  # more QoS 2 ids at a time than the broker's list has
            self.window, self.qos, self.lazy, self.publishes = 40, (2,), 95, 70
        if plan.is_plain:
            self.publishes, self.subscribes, self.retains, self.wills = 70, 3, 0, 0
            self.alias_max, self.disconnects = numbers.choice((0, 0, 0, 1)), self.disconnects // 3
            self.qos = numbers.choice(((0,), (0, 1), (1,), (1, 2)))
        if plan.with_options:
            publishes = self.index % 2 == 0
            self.publishes, self.subscribes = (70, 0) if publishes else (0, 6)
        # Does it come back with the other version now and then?
        self.changes_version = plan.is_plain and self.level > 3 and settings.mqtt_versions == 5
        self.topics, self.filters = _words(numbers, plan, self.level)
        self.sizes = _sizes(plan.limits)
        if plan.has_long:
            numbers = Numbers(seed, 80 + index)
            self.topics = [_long(numbers) for _ in range(3)] + self.topics[:1]
            self.sizes = [8, 8] + [numbers.between(8, 170) for _ in range(8)]
        may_share = plan.limits.shares and (plan.with_options or not plan.is_plain)
        self.sharing = plan.sharing if may_share else 0
        if plan.with_options:
            self.sharing = 100 if numbers.below(3) else 0


def _words(numbers, plan, level):
    topics = [numbers.choice(TOPICS) for _ in range(numbers.between(1, 6))]
    if plan.is_plain:
        topics = [b"a", b"a/b"]
    if plan.with_options:
        return topics, [numbers.choice((b"a", b"a/b", b"a/#", b"a/#"))]
    filters = [numbers.choice(FILTERS) for _ in range(numbers.between(1, 5))]
    filters += [numbers.choice(EVERYTHING)]
    if plan.versions_apart:
        filters = [[b"b", b"b/#", b"c/#"], [b"a/+", b"a/b", b"a"]][level == 5]
    if plan.tight:
        filters += [b"t%d/%d" % (n, n) for n in range(numbers.between(0, 3))]
        filters += [DEEP][: numbers.below(2)]
    topics = [topic for topic in topics if len(topic) <= plan.limits.topic_bytes]
    return topics or [b"a/b"], [text for text in filters if len(text) <= plan.limits.topic_bytes]


def _long(numbers):
    # Topic and packet end around the end of an outgoing buffer, or of the next one
    name = numbers.choice((b"a/", b"b/", b"a/b/c/"))
    return name + b"x" * numbers.between(60 - len(name), 170)


def _sizes(limits):
    most = limits.max_packet - 100
    return [size for size in (8, 8, 9, 20, 20, 50, 120, 300, 700, 1500) if size <= most]


def _tight(numbers):
    """Limits with which tables are often full, and packets longer than buffers."""
    connections = numbers.between(2, 6)
    most = numbers.choice((256, 512, 1024))
    subscriptions = numbers.between(4, 14)
    sessions = connections + numbers.below(4)
    return Limits(
        connections=connections,
        sessions=sessions,
        subscriptions=subscriptions,
        nodes=numbers.between(6, 20),
        name_bytes=numbers.choice((128, 320)),
        levels=numbers.choice((4, 16)),
        topic_bytes=64,
        retained=numbers.choice((1, 3, 6, 12)),
        retained_name_bytes=numbers.choice((64, 256)),
        messages=numbers.between(3, 20),
        message_bytes=numbers.choice((1024, 2048, 4096)),
        message_block=numbers.choice((16, 32, 64)),
        deliveries=numbers.between(4, 24),
        inflight=numbers.between(1, 4),
        queued=numbers.between(1, 8),
        received=32,
        max_packet=most,
        tx_bytes=numbers.choice((80, 160, 161, 640)),
        rx_bytes=numbers.choice((64, 200, 700)),
        tail_bytes=numbers.choice((16, 64)),
        reassembly=numbers.between(1, 2),
        routes=numbers.choice((1, 4, 16)),
        route_topic_bytes=numbers.choice((8, 32)),
        route_entries=max(sessions, subscriptions, 8),
        shares=numbers.choice((0, 1, 2, 4)),
        aliases=numbers.choice((0, 1, 3)),
    )


def _roomy(numbers):
    """Limits with which no table is ever full."""
    return Limits(
        connections=8,
        sessions=16,
        subscriptions=200,
        nodes=200,
        name_bytes=4096,
        retained=32,
        messages=400,
        message_bytes=200000,
        deliveries=600,
        inflight=numbers.choice((1, 4, 16)),
        queued=400,
        received=64,
        max_packet=2048,
        tx_bytes=numbers.choice((160, 640, 2048)),
        rx_bytes=640,
        reassembly=8,
        route_entries=200,
        shares=8,
        aliases=numbers.choice((0, 2)),
    )


def _settings(numbers, limits):
    found = Settings(sys_interval=0, log_type=0)
    found.mqtt_versions = numbers.choice((5, 5, 5, 5, 3))
    found.qos2_delivery = numbers.choice(("receive", "receive", "release"))
    found.upgrade_outgoing_qos = numbers.one_in(8)
    found.queue_qos0_messages = numbers.one_in(5)
    found.allow_duplicate_messages = numbers.one_in(8)
    found.retry_interval = numbers.choice((0, 1))
    found.max_inflight_messages = numbers.choice((0, 0, 1))
    found.max_session_share = numbers.choice((50, 50, 20, 100))
    found.max_offline_share = numbers.choice((75, 75, 40, 100))
    found.message_size_limit = numbers.choice((0, 0, 0, 100))
    found.persistent_client_expiration = numbers.choice((0, 0, 0, 20))
    found.max_topic_alias = numbers.choice((65535, 65535, 0, 1))
    found.when_full["messages"] = numbers.choice(("drop_newest", "drop_oldest", "disconnect"))
    found.when_full["deliveries"] = numbers.choice(("drop_newest", "drop_oldest"))
    found.when_full["sessions"] = numbers.choice(("drop_empty", "drop_oldest", "refuse"))
    return found
