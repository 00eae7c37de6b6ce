# world.py - the broker with its loop, the clients and the model, turn by turn.
#
# A turn consists of *windows*: a read and all that the broker does with it, up to the next read;
# at the end, the rest of the turn. When a window ends, the model handles the packets that were
# read, and then every packet that the broker has written is compared with the model.
#
# A commit of the journal may come in the middle of a window. Then the window is split: the model
# handles what the broker has handled so far, so that a snapshot of the model can be taken.
from slotmq import Broker
from slotmq.net.loop import Loop
from slotmq.platform import heap, ondemand
from slotmq_tools.sim.flash import PowerCut
from slotmq_tools.sim.link import Weather
from slotmq_tools.sim.machine import Clock, Listener, Poller, Trace
from slotmq_tools.sim.numbers import Numbers

from ..broker.unit.support.invariants import broken, left, surface
from ..broker.unit.support.tables import counts
from . import convergence
from .clients import behaviour
from .clients.client import Client
from .clients.link import Link
from .event_counts import EventCounts, FastCounts, note_full, note_full_space
from .model import output, queue_check, rights, tables
from .model.model import Model, PromiseBroken
from .model.observations import NO_REFUSALS
from .persistence.storage import Storage
from .plan import Plan

_CHECK_INTERVAL = 16  # turns between two checks of all tables
_BYTES_IN = 5  # index in broker.stats


class Hooks:
    """A hook of a program, asked before each PUBLISH and will. Sometimes it finds no memory."""

    def __init__(self, world):
        self.world = world
        self.numbers = Numbers(world.seed, 6)

    def may_publish(self, client_id, topic):
        if self.numbers.one_in(20) and not self.world.calm:
            self.world.raised = True
            raise MemoryError
        return True


class World:
    def __init__(self, seed, steps, only=None, where=""):
        self.seed = seed
        self.numbers = Numbers(seed, 2)
        self.is_plain = where == "plain"
        self.plan = Plan(seed)
        self.plan.choose_faults(Numbers(seed, 4), steps, "" if self.is_plain else where)
        self.plan.choose_rule_changes(Numbers(seed, 9), steps)
        self.has_other_rules = False
        self.trace = Trace()
        self.clock = Clock(self.plan.clock_base)
        self.events = EventCounts()
        self.packets_in = self.packets_out = 0
        self.turns = self.steps = 0
        self.longest_ms = 0  # of all turns
        self.lag_ms = 0  # by which the broker's times may be wrong because of reboots
        self.slack_ms = 1000  # how late the broker may do what is due
        self.early_ms = 300  # how early
        self.calm = False  # are the faults over?
        self.stopping = False
        self.stopped_in_order = False  # was the last reboot an orderly stop?
        # May acknowledged messages be lost? After bit rot, or a power cut with
        # `persistence_sync interval`.
        self.loss_allowed = False
        self.calm_weather = Weather()
        self.links = []
        self.model = self.initial_counts = None
        self.hooks = Hooks(self) if self.plan.has_hook else None
        self.raised = False  # has the hook raised an exception in this window?
        # The current window: (link, packets read, their sizes, bytes read before them)
        self.window = None
        self.written_links = []  # on which the broker has written in this window
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
        """Start a new broker. It finds what its journal has."""
        if self.storage and self.model:
            self.plan.configure_again(self.numbers)
        if self.plan.has_rules:
            ondemand.take("access.acl_file", 0).open = rights.file_of(self)
        self.broker = Broker(self.plan.limits, self.plan.settings)
        FastCounts(self)
        if self.seed & 1 or self.is_plain:
            self.broker.retained.scan_slots = None  # as on MicroPython
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
        surface(self.broker)
        self.loop.listeners.add(self.listener, self.listener.accept)
        self.clock.before_asked = self.settle
        self.initial_counts = self.initial_counts or counts(self.broker)
        self.check_tables()

    # The power

    def reboot(self, kind):
        """off: a power cut between two turns; stop: an orderly stop; cut: a power cut within one
        of the next operations of the medium."""
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
        """What the end of a turn changes is committed in the next turn. After that the model
        equals the last commit, and no snapshot of it is needed."""
        for _ in range(5):
            if self.storage.snapshots_all or not tables.has_uncommitted_changes(self.broker):
                return
            self.turn(1)
        raise PromiseBroken("changes are not committed")

    def _stop(self):
        self.stopping = True
        if self.storage:
            self.storage.arm_cut(0)
        try:
            self.loop.close()
            self.settle()
            if not self.storage:  # else what counts is the last commit
                self.model.end_turn()
            self._check_output()
        except PowerCut:
            self._power_fails("cut stop")
        else:
            self._power_fails("stop")
        self.stopping = False

    def _power_fails(self, how):
        """Reset all connections and start the broker with what its medium has."""
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
                storage.log_lines.append("a start that was cut may have logged it")
                storage.power_off()
                storage.power_on()

    # A turn

    def step(self):
        """Each client may do something; then the broker has a turn."""
        self.steps += 1
        self._fill()
        reboots = self.plan.reboots
        while reboots and reboots[0][0] == self.steps:
            self.reboot(reboots.pop(0)[1])
        if self.plan.rule_changes and self.plan.rule_changes[0] <= self.steps:
            self._change_rules()
        for client in self.clients:
            behaviour.step(client)
        self.turn(self.numbers.choice(self.plan.times))

    def end(self):
        """After the last step: everything converges."""
        convergence.end(self)

    def note(self):
        """Count what is counted once a seed."""
        note_full(self)

    def _change_rules(self):
        # Not while retained messages are being sent, since of these nobody knows how many are.
        broker = self.broker
        if broker.ending_count or any(broker.sessions.scans):
            return
        self.check()
        self.plan.rule_changes.pop(0)
        self.has_other_rules = not self.has_other_rules
        broker.reload()
        self.model.rules_changed()
        self.events["other rules"] += 1

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
            self._power_fails("cut")  # in an operation whose errors the broker ignores
            return
        is_complete = not self.broker.ending_count  # was the turn not cut short?
        for wrong in left(self.broker) if is_complete else ():
            raise PromiseBroken(wrong)
        if self.turns % _CHECK_INTERVAL == 0 and is_complete:
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
        """Check what must hold between turns."""
        self.check_tables()
        self.model.retained.check()
        queue_check.reconcile(self.model, NO_REFUSALS)

    def settle(self):
        """End the window: the broker has handled the last read. Called before each read."""
        if self.raised:
            self._drop_unhandled()
        window, self.window = self.window, None
        if window:
            self.model.was_read(window[0], window[1])
            self._check_output()

    def _drop_unhandled(self):
        # A packet whose hook raised MemoryError counts as never read, and ends its connection.
        self.raised = False
        link, packets, sizes, start = self.window
        count = self._handled(sizes, start)
        if packets[count - 1][0] != "connect":
            self.window = (link, packets[: count - 1], sizes, start)
            self.window[1].append(("raised",))
            self.events["no heap"] += 1

    def split_window(self):
        """Before a commit: the model handles what the broker has handled so far."""
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
        # How many packets of these sizes the broker has handled, or is handling.
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

    # Called by links

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

    # Called by clients

    def open(self, client, number, level):
        """Open a connection to the broker."""
        link = Link(self, number, client, level, self.calm_weather)
        if not self.calm:
            link.weather = self.plan.weather(link.numbers)
        self.links.append(link)
        self.listener.waiting.append(link)
        return link

    def client_forgot_session(self, client):
        """A client has discarded its half of a session; the broker may still have the other."""
        session = self.model.find_session(client.plan.name)
        if session:
            session.client_forgot = True

    def received_by_application(self, client, packet):
        """A client has passed a message to its application."""
        delivery = packet.delivery
        if delivery is None:
            return
        delivery.times_received += 1
        self.events["application"] += 1
        may_be_again = (delivery.qos == 1 and packet.dup) or client.link.session.client_forgot
        if delivery.times_received > 1 and not may_be_again and not self.loss_allowed:
            raise PromiseBroken(f"{client.plan.name} received it twice: {delivery!r}")
