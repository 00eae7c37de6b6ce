# world.py - the broker with its loop, the clients and the model, turn by turn.
#
# The model is told what happened in windows: a read and all that the broker made of it, up
# to the next read; then the rest of the turn. What the broker wrote in a window is looked
# at when the model knows what it handled.
from slotmq import Broker
from slotmq.loop import Loop

from ..unit.invariants import broken
from ..unit.tables import counts
from . import habits, peek, queues, watch
from .client import Client
from .link import Link, Weather
from .machine import Clock, Listener, Poller
from .model import Broken, Model
from .numbers import Numbers
from .plan import Plan
from .trace import Trace

EVERY = 16  # turns between two looks at all tables


class World:
    def __init__(self, seed, only=None, keep_trace=False):
        self.seed = seed
        self.numbers = Numbers(seed, 2)
        self.plan = Plan(seed)
        self.trace = Trace(keep_trace)
        self.clock = Clock(self.plan.clock_base)
        self.seen = Seen()
        self.packets_in = self.packets_out = 0
        self.turns = 0
        self.slack_ms = 1000
        self.calm = self.stopping = False
        self.calm_weather = Weather()
        self.early_ms = 300
        self.links = []
        self.start()
        plans = self.plan.clients
        self.clients = [Client(self, p) for p in plans if only is None or p.index in only]

    # The broker

    def start(self):
        """A broker, as after power-on; what it remembers is the medium's affair."""
        self.broker = Broker(self.plan.limits, self.plan.settings)
        self.poller = Poller(self.numbers)
        self.listener = Listener(self.numbers)
        self.listener.fails = 5 if self.plan.bad_weather > 1 else 0
        self.loop = self.broker.loop = Loop(self.broker, self.poller, self.clock)
        self.loop.doors.add(self.listener, self.listener.accept)
        self.clock.before_asked = self.settle
        self.window = None
        self.wrote = []
        self.empty = counts(self.broker)
        self.model = Model(self)

    def reboot(self):
        """The power is gone and comes back: every connection is reset.

        Without a journal the broker knows nothing afterwards, and neither does the model."""
        for link in self.links:
            link.die()
        self.links = []
        self.seen["reboot"] += 1
        self.start()

    # A turn

    def step(self):
        """Every client does something, or nothing; then the broker has a turn."""
        if self.plan.reboots and self.numbers.one_in(60):
            self.reboot()
        for client in self.clients:
            habits.step(client)
        self.turn(self.numbers.choice(self.plan.times))

    def turn(self, ms):
        self.turns += 1
        self.clock.ms += ms
        self.slack_ms = max(self.slack_ms, 1000 + 4 * ms)
        self.early_ms = max(self.early_ms, 500 + 3 * ms)
        self.loop.turn(0)
        self.settle()
        self.model.turn_ends()
        self._look_at_writes()
        if self.turns % EVERY == 0:
            self.check()
        self._forget_links()
        for session in self.model.sessions:
            session.removed = []
        self.model.died = []

    def check(self):
        """What must hold between turns."""
        wrong = broken(self.broker)
        if wrong:
            raise Broken(wrong[0])
        self.model.retained.check()
        queues.reconcile(self.model, NOTHING)

    def settle(self):
        """The window is over: the broker has made what it makes of the last read."""
        window, self.window = self.window, None
        if window:
            self.model.was_read(*window)
            self._look_at_writes()

    def _look_at_writes(self):
        links, self.wrote = self.wrote, []
        for link in links:
            for packet in link.parse():
                watch.written(self.model, link, packet)

    def _forget_links(self):
        if self.turns % 8 == 0:
            self.links = [link for link in self.links if not link.closed or link.attached]

    # What links tell

    def was_read(self, link, packets):
        if packets:
            self.window = (link, packets)

    def was_written(self, link):
        if link not in self.wrote:
            self.wrote.append(link)

    def was_closed(self, link):
        if not link.session and not (link.refused or link.reset or link.ended or self.stopping):
            late = self.clock.ms - link.opened_ms + self.early_ms >= 10000
            if not late and not self.model.is_late(link):
                raise Broken(f"link {link.number} was closed before its CONNECT")

    # What clients do

    def open(self, client, number, level):
        """A new connection to the broker."""
        link = Link(self, number, client, level, self.calm_weather)
        if not self.calm:
            link.weather = self.plan.weather(link.numbers)
        self.links.append(link)
        self.listener.waiting.append(link)
        return link

    def forgets(self, client):
        """A client forgets its session; the broker may still have the other half."""
        session = self.model.find(client.plan.name)
        if session:
            session.forgotten = True

    def application(self, client, packet):
        """A client gives a message to its application."""
        owed = packet.owed
        if owed is None:
            return
        owed.got += 1
        self.seen["application"] += 1
        may_be_again = (owed.qos == 1 and packet.dup) or client.link.session.forgotten
        if owed.got > 1 and not may_be_again:
            raise Broken(f"{client.plan.name} has it twice: {owed!r}")


class Seen:
    """How often things happened that a campaign must have seen."""

    def __init__(self):
        self.counts = {}

    def __getitem__(self, what):
        return self.counts.get(what, 0)

    def __setitem__(self, what, count):
        self.counts[what] = count


NOTHING = peek.Growth()
NOTHING.messages = NOTHING.deliveries = NOTHING.dropped = 0
