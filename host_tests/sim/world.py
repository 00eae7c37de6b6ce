# world.py - the broker with its loop, the clients and the model, turn by turn.
#
# The model is told what happened in windows: a read and all that the broker made of it, up
# to the next read; then the rest of the turn. What the broker wrote in a window is looked
# at when the model knows what it handled.
from slotmq import Broker
from slotmq.net.loop import Loop
from slotmq.platform import heap
from slotmq_tools.sim.flash import PowerCut
from slotmq_tools.sim.link import Weather
from slotmq_tools.sim.machine import Clock, Listener, Poller
from slotmq_tools.sim.numbers import Numbers
from slotmq_tools.sim.trace import Trace

from ..broker.unit.support.invariants import broken
from ..broker.unit.support.tables import counts
from .clients import behaviour
from .clients.client import Client
from .clients.link import Link
from .event_counts import EventCounts, note_full, note_full_space
from .model import output, queue_check, tables
from .model.model import Model, PromiseBroken
from .model.observations import NO_REFUSALS
from .persistence.storage import Storage
from .plan import Plan

CHECK_INTERVAL = 16  # turns between two looks at all tables
_BYTES_IN = 5  # of broker.stats


class Hooks:
    """What a program asks before each PUBLISH and will, where the heap may be full."""

    def __init__(self, world):
        self.world = world
        self.numbers = Numbers(world.seed, 6)

    def may_publish(self, client_id, topic):
        if self.numbers.one_in(20) and not self.world.calm:
            self.world.raised = True
            raise MemoryError
        return True


class World:
    def __init__(self, seed, steps, only=None, keep_trace=False, where=""):
        self.seed = seed
        self.numbers = Numbers(seed, 2)
        self.plan = Plan(seed)
        self.plan.choose_faults(Numbers(seed, 4), steps, where)
        self.trace = Trace(keep_trace)
        self.clock = Clock(self.plan.clock_base)
        self.events = EventCounts()
        self.packets_in = self.packets_out = 0
        self.turns = self.steps = 0
        self.slack_ms = 1000
        self.longest_ms = 0  # of a turn
        self.lag_ms = 0  # what time may be wrong by, since reboots
        self.calm = self.stopping = False
        self.stopped_in_order = False  # did it end in order?
        self.loss_allowed = False  # has something been lost that was promised, as may be?
        self.calm_weather = Weather()
        self.early_ms = 300
        self.links = []
        self.model = self.initial_counts = None
        self.hooks = Hooks(self) if self.plan.has_hook else None
        self.raised = False  # has the hook, in this window?
        self.storage = Storage(self) if self.plan.medium else None
        self._fill()
        self.start_broker()
        plans = self.plan.clients
        self.clients = [Client(self, p) for p in plans if only is None or p.index in only]

    def _fill(self):
        if self.steps in self.plan.fills[:2]:
            self.storage.fill(self.plan.fills[2] if self.steps == self.plan.fills[0] else -1)

    # The broker

    def start_broker(self):
        """A broker, as after power-on; what it remembers is the medium's affair."""
        if self.storage and self.model:
            self.plan.configure_again(self.numbers)
        self.broker = Broker(self.plan.limits, self.plan.settings)
        self.broker.hooks = self.hooks
        self.window = None
        self.written_links = []
        self.clock.before_asked = None
        if self.storage and self.model:
            self.model.restart(self.broker)
        else:
            self.model = Model(self)
        if self.storage:
            self.storage.boot(self.broker)
        self.poller = Poller(self.numbers)
        self.listener = Listener(self.numbers)
        self.listener.fails = 5 if self.plan.bad_weather > 1 else 0
        self.loop = self.broker.loop = Loop(self.broker, self.poller, self.clock)
        self.loop.listeners.add(self.listener, self.listener.accept)
        self.clock.before_asked = self.settle
        self.initial_counts = self.initial_counts or counts(self.broker)
        self.check_tables()

    # The power

    def reboot(self, kind):
        """off: the power is gone; stop: in order; cut: in the midst of a write to come."""
        for _ in range(self.plan.quiet):
            self.turn(250)
        if kind != "stop" and self.storage:
            self._wait_for_commit()
        if kind == "cut":
            self.storage.arm_cut(self.plan.cut_after(self.numbers))
        elif kind == "stop":
            self._stop()
        else:
            self._power_fails("off")

    def _wait_for_commit(self):
        """What the end of a connection changed at the end of a turn is kept in the next one.

        Then the model is what was kept, where no snapshot was taken of that."""
        for _ in range(5):
            if self.storage.snapshots_all or not tables.has_uncommitted_changes(self.broker):
                return
            self.turn(1)
        raise PromiseBroken("it waits to be kept, and nothing is done about it")

    def _stop(self):
        self.stopping = True
        if self.storage:
            self.storage.arm_cut(0)
        try:
            self.loop.close()
            self.settle()
            if not self.storage:  # else what it has kept is followed, and nobody hears of more
                self.model.end_turn()
            self._check_output()
        except PowerCut:
            self._power_fails("cut stop")
        else:
            self._power_fails("stop")
        self.stopping = False

    def _power_fails(self, how):
        """Every connection is reset, and the broker starts with what it kept."""
        heap.settle()
        note_full(self)
        self.events["reboot"] += 1
        self.events["reboot " + how] += 1
        self.trace.note(80, 0, self.clock.ms, how.encode())
        self.stopped_in_order = how == "stop"
        self.loss_allowed = self.loss_allowed or (how != "stop" and not self.plan.always)
        for link in self.links:
            link.die()
        self.links = []
        self.lag_ms += 200 + self.longest_ms
        storage = self.storage
        if not storage:
            self.start_broker()
            return
        storage.log_lines = []
        storage.power_off()
        storage.power_on()
        if self.plan.rots:
            storage.rot()
        if self.numbers.one_in(4):
            storage.cut_at(self.plan.cut_after(self.numbers))
        while True:
            try:
                self.start_broker()
                return
            except PowerCut:
                heap.settle()
                self.events["reboot cut start"] += 1
                storage.log_lines.append("it may have been said already")
                storage.power_off()
                storage.power_on()

    # A turn

    def step(self):
        """Every client does something, or nothing; then the broker has a turn."""
        self.steps += 1
        self._fill()
        reboots = self.plan.reboots
        while reboots and reboots[0][0] == self.steps:
            self.reboot(reboots.pop(0)[1])
        for client in self.clients:
            behaviour.step(client)
        self.turn(self.numbers.choice(self.plan.times))

    def turn(self, ms):
        self.turns += 1
        self.clock.ms += ms
        self.longest_ms = max(self.longest_ms, ms)
        self.slack_ms = 1000 + 4 * self.longest_ms + self.lag_ms
        self.early_ms = 500 + 3 * self.longest_ms + self.lag_ms
        try:
            self.loop.turn(0)
        except PowerCut:
            self._power_fails("cut")
            return
        self.settle()
        self.model.end_turn()
        self._check_output()
        if self.broker.journal_full:
            self.events["full journal"] += 1
        if self.storage and not self.storage.device.is_on:
            self._power_fails("cut")  # in an operation whose errors nobody minds
            return
        if (
            self.turns % CHECK_INTERVAL == 0 and not self.broker.ending_count
        ):  # else it was cut short
            self.check()
            note_full_space(self)
        self._forget_links()
        for session in self.model.sessions:
            session.removed = []
        self.model.ended_sessions = []

    def check_tables(self):
        wrong = broken(self.broker)
        if wrong:
            raise PromiseBroken(wrong[0])
        if self.broker.loop.exhausted:
            raise PromiseBroken("an allocation was tried with the heap locked")

    def check(self):
        """What must hold between turns."""
        self.check_tables()
        self.model.retained.check()
        queue_check.reconcile(self.model, NO_REFUSALS)

    def settle(self):
        """The window is over: the broker has made what it makes of the last read."""
        if self.raised:
            self._raised()
        window, self.window = self.window, None
        if window:
            self.model.was_read(window[0], window[1])
            self._check_output()

    def _raised(self):
        # The packet whose hook has found no heap counts as never read, and ends its connection.
        self.raised = False
        link, packets, sizes, start = self.window
        count = self._handled(sizes, start)
        if packets[count - 1][0] != "connect":
            self.window = (link, packets[: count - 1], sizes, start)
            self.window[1].append(("raised",))
            self.events["no heap"] += 1

    def split_window(self):
        """The journal is about to write: the model learns of what was handled until now."""
        if self.broker.reading == tables.NONE:
            self.settle()
            self.model.finish_routing()
            return
        if not self.window:
            return
        link, packets, sizes, start = self.window
        count = self._handled(sizes, start)
        start += sum(sizes[:count])
        self.window = (link, packets[count:], sizes[count:], start) if packets[count:] else None
        if count:
            self.model.was_read(link, packets[:count], True)
            self._check_output()

    def _handled(self, sizes, start):
        # How many packets of these sizes the broker has come to.
        count = 0
        while count < len(sizes) and start + sizes[count] <= self.broker.stats[_BYTES_IN]:
            start += sizes[count]
            count += 1
        return count

    def _check_output(self):
        links, self.written_links = self.written_links, []
        for link in links:
            for packet in link.parse():
                output.written(self.model, link, packet)

    def _forget_links(self):
        if self.turns % 8 == 0:
            self.links = [link for link in self.links if not link.closed or link.attached]

    # What links tell

    def was_read(self, link, packets):
        self.model.messages_refused_before = self.broker.messages.refused
        if packets:
            self.window = (link, packets, link.sizes, self.broker.stats[_BYTES_IN])

    def was_written(self, link):
        if link not in self.written_links:
            self.written_links.append(link)

    def was_closed(self, link):
        if not link.session and not (link.refused or link.reset or link.ended or self.stopping):
            late = self.clock.ms - link.opened_ms + self.early_ms >= 10000
            if not late and not self.model.timeouts.may_have_expired(link):
                raise PromiseBroken(f"link {link.number} was closed before its CONNECT")

    # What clients do

    def open(self, client, number, level):
        """A new connection to the broker."""
        link = Link(self, number, client, level, self.calm_weather)
        if not self.calm:
            link.weather = self.plan.weather(link.numbers)
        self.links.append(link)
        self.listener.waiting.append(link)
        return link

    def client_forgot_session(self, client):
        """A client forgets its session; the broker may still have the other half."""
        session = self.model.find_session(client.plan.name)
        if session:
            session.client_forgot = True

    def application(self, client, packet):
        """A client gives a message to its application."""
        delivery = packet.delivery
        if delivery is None:
            return
        delivery.times_received += 1
        self.events["application"] += 1
        may_be_again = (delivery.qos == 1 and packet.dup) or client.link.session.client_forgot
        if delivery.times_received > 1 and not may_be_again and not self.loss_allowed:
            raise PromiseBroken(f"{client.plan.name} has it twice: {delivery!r}")
