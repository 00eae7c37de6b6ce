# plan.py - what a seed decides for two brokers: limits, settings, journals, clients, the topics of
# the bridge, and what goes wrong at which step.
from slotmq import Limits, Settings
from slotmq_tools.sim.link import ALL, Weather
from slotmq_tools.sim.machine import PERIOD
from slotmq_tools.sim.numbers import Numbers

from ..plan import ClientPlan

HERE, THERE = 0, 1
FAR = b"far/"  # the prefix of topics there, in some seeds
# Journals here and there. Only one of them is a file, since files are found through a module.
MEDIA = (("flash", "flash"), ("littlefs", "flash"), ("host", "flash"), ("flash", "host"))
VERSIONS = ("mqttv31", "mqttv311", "mqttv311", "mqttv50", "mqttv50")
# Power cuts: between two turns, an orderly stop, within an operation of the medium, and after one
# of these packets has left to the other broker
REBOOTS = ("off", "stop", "cut", "cut", "cut", "puback", "pubrec", "pubrel", "pubcomp")
# Of the link: both ends see a reset, one does, none does for a while, and nobody can connect
CUTS = ("both", "here", "there", "frozen", "down")
_CUT_AFTER = 30  # operations of a medium


class EndPlan:
    """The decisions for one of the brokers."""

    has_rules = has_long = is_plain = rots = real_littlefs = versions_apart = tight = (
        with_options
    ) = False
    always = True
    fills = ()
    sharing = 0

    def __init__(self, seed, side, numbers, medium, forgets):
        self.medium = medium
        self.forgets = forgets  # does it lose its journal with its power?
        self.limits = _limits(numbers)
        self.settings = settings = Settings(sys_interval=0, log_type=0)
        settings.qos2_delivery = numbers.choice(("receive", "receive", "release"))
        settings.max_inflight_messages = numbers.choice((0, 0, 1))
        settings.max_session_share = settings.max_offline_share = 100
        self.autosave = numbers.choice((0, 1, 5, 30))
        self.block_bytes = numbers.choice((1024, 4096))
        self.spare_blocks = numbers.choice((1, 3))
        self.spare_bytes = numbers.choice((4000, 30000))
        self.faults = numbers.choice((0, 1))
        count = numbers.between(1, 2) if not forgets else 0
        self.clients = [self._client(seed, 8 * side + k, side) for k in range(count)]

    def _client(self, seed, index, side):
        # It publishes, and has subscribed to everything at QoS 2.
        plan = ClientPlan(seed, index, self)
        plan.is_clean = plan.subscribes = plan.retains = plan.expires = plan.wills = 0
        plan.packet_max = plan.alias_max = 0
        plan.expiry = 100000
        plan.publishes = max(20, min(plan.publishes, 40))
        plan.topics = [b"t/a", b"t/b"] if side == THERE else [b"h/a", b"h/b/c"]
        plan.sizes = [12, 20, 60, 300]
        if Numbers(seed, 13).one_in(3):
            plan.topics[1] += b"/" + b"x" * Numbers(seed, 80 + index).between(120, 240)
        plan.side = side
        return plan


class Plan:
    """The decisions of one seed."""

    def __init__(self, seed, steps):
        numbers = Numbers(seed, 1)
        self.clock_base = numbers.choice((0, PERIOD - 5000, 77))
        media = numbers.choice(MEDIA)
        forgets = False, numbers.one_in(5)
        self.ends = [
            EndPlan(seed, side, numbers, media[side], forgets[side]) for side in (HERE, THERE)
        ]
        self.has_prefix = numbers.one_in(2)
        self.options = {
            "restart_timeout": 1,
            "keepalive_interval": numbers.choice((1, 2, 5)),
            "notifications": numbers.one_in(2),
            "try_private": not numbers.one_in(4),
            "bridge_protocol_version": numbers.choice(VERSIONS),
        }
        self.is_lazy = forgets[THERE] and numbers.one_in(2)  # then nothing comes in
        if self.is_lazy:
            self.options |= {"start_type": "lazy", "threshold": 1, "idle_timeout": 2}
        self.times = numbers.choice(((1, 30, 400), (100, 250), (200, 600)))
        self.weather = _weather(numbers)
        self.rate = numbers.choice((ALL, ALL, 500, 100))  # bytes of the link in each step
        self.delay_ms = numbers.choice((0, 0, 20, 300))
        self.cuts = _at_steps(numbers, steps, numbers.choice((0, 1, 3, 6)), CUTS)
        kinds = [(side, kind) for side in (HERE, THERE) for kind in REBOOTS]
        self.reboots = _at_steps(numbers, steps, numbers.choice((0, 2, 4, 6)), kinds)

    def topics(self):
        """The bridge's topics, as broker.bridge() takes them."""
        more = ("", FAR.decode()) if self.has_prefix else ()
        return [("h/#", "out", 2) + more, ("t/#", "in", 2) + more]  # noqa: RUF005 - MicroPython

    def cut_after(self, numbers):
        return numbers.between(1, _CUT_AFTER)


def _at_steps(numbers, steps, count, kinds):
    return sorted([(1 + numbers.below(steps), numbers.choice(kinds)) for _ in range(count)])


def _weather(numbers):
    weather = Weather()
    weather.reads = numbers.choice((ALL, 500, 100))
    weather.writes = numbers.choice((ALL, 500, 100))
    weather.capacity = numbers.choice((ALL, 3000, 300))
    weather.not_now = numbers.choice((0, 0, 20))
    return weather


def _limits(numbers):
    # Roomy: nothing may be dropped.
    return Limits(
        connections=6,
        sessions=8,
        subscriptions=40,
        nodes=60,
        messages=1500,
        message_bytes=150000,
        deliveries=3000,
        inflight=numbers.choice((1, 4, 50)),
        queued=1500,
        received=64,
        max_packet=2048,
        tx_bytes=numbers.choice((160, 640, 2048)),
        rx_bytes=640,
        reassembly=4,
        route_entries=60,
    )
