# end.py - one of the two brokers: its loop, its journal with the power, its clients. It is the
# `world` of their links and of its storage.
from slotmq import Broker
from slotmq.bridge import link as dialling
from slotmq.net.loop import Loop
from slotmq.platform import heap
from slotmq_tools import codec
from slotmq_tools.sim import machine
from slotmq_tools.sim.flash import PowerCut
from slotmq_tools.sim.link import Weather
from slotmq_tools.sim.numbers import Numbers

from ...broker.unit.support.invariants import broken, surface
from ..clients.client import Client
from ..clients.link import Link
from ..model.model import PromiseBroken
from ..persistence import storage
from .plan import HERE

PACKETS = {"puback": codec.PUBACK, "pubrec": codec.PUBREC}
PACKETS |= {"pubrel": codec.PUBREL, "pubcomp": codec.PUBCOMP}


class Storage(storage.Storage):
    """The device with the journal. What a start must find shows in what arrives."""

    def commit_begins(self, is_rewriting):
        pass

    def commit_done(self):
        pass

    def power_off(self):
        self.device.cut_at(0)


class Poller(machine.Poller):
    def unregister(self, stream):
        if stream in self.masks:  # as on a board: a bridge that waits is not there
            super().unregister(stream)


class OwnClient(Client):
    """A client whose messages the world expects at all clients."""

    was_accepted = False

    def message(self, qos):
        msg = super().message(qos)
        msg.topic = self.world.all.topic_at(msg.topic, self.plan.side)
        self.world.all.published(msg, self.plan.side)
        return msg

    def unsubscribe(self):
        pass

    def _resumes(self, packet):
        was_accepted, self.was_accepted = self.was_accepted, True
        if was_accepted and self.plan.level > 3 and not packet.present:
            raise PromiseBroken(f"{self.world.name} has forgotten {self.plan.name}")
        return was_accepted


class End:
    has_other_rules = loss_allowed = False
    storage = None  # for Link: no model of it

    def __init__(self, world, side, plan):
        self.all = world
        self.side = side
        self.name = "there" if side else "here"
        self.seed = world.seed + 15000 * side
        self.plan = plan
        self.plan_of_all = world.plan
        self.numbers = Numbers(self.seed, 2)
        self.clock = world.clock
        self.trace = world.trace
        self.events = world.events
        self.links = []
        self.turns = self.packets_in = self.packets_out = 0
        self.device = Storage(self)
        self.start()
        self.clients = [OwnClient(self, each) for each in plan.clients]

    def start(self):
        """Start a broker, which finds what its journal has; here it begins the bridge."""
        self.broker = broker = Broker(self.plan.limits, self.plan.settings)
        self.device.boot(broker)
        self.poller = Poller(self.numbers)
        self.listener = machine.Listener(self.numbers)
        self.loop = broker.loop = Loop(broker, self.poller, self.clock)
        surface(broker)
        self.loop.listeners.add(self.listener, self.listener.accept)
        if self.side == HERE:
            dialling.find, dialling.dial = self.all.find, self.all.dial
            dialling.noise = lambda: 0
            options = self.all.plan.options
            topics = self.all.plan.topics()
            broker.bridge("up", "192.0.2.1", topics, remote_clientid="edge", **options)
        self.check()

    def check(self):
        wrong = broken(self.broker)
        if wrong:
            raise PromiseBroken(f"{self.name}: {wrong[0]}")
        if self.loop.exhausted:
            raise PromiseBroken(f"{self.name}: an allocation was tried with the heap locked")

    def turn(self):
        self.turns += 1
        try:
            self.loop.turn(0)
        except PowerCut:
            self.power_fails("cut")
            return
        table = self.all.tables[self.side]
        if not self.device.device.is_on:
            self.power_fails("cut")  # in an operation whose errors the broker ignores
        elif table.has_left:
            table.has_left = False
            self.power_fails("packet")

    # The power

    def reboot(self, kind):
        """kind: one of plan.REBOOTS."""
        if kind in PACKETS:
            self.all.tables[self.side].watched = PACKETS[kind]
            return
        if kind == "cut":
            self.device.device.cut_at(self.all.plan.cut_after(self.numbers))
            return
        if kind == "stop":
            try:
                self.loop.close()
            except PowerCut:
                kind = "cut stop"
        self.power_fails(kind)

    def power_fails(self, how):
        heap.settle()
        self.events["reboot"] += 1
        self.events[f"reboot {how} {self.name}"] += 1
        self.trace.note(80, self.side, self.clock.ms, how.encode())
        for link in self.links:
            link.die()
        self.links = []
        self.all.tables[self.side].rebooted()
        self.all.lost_power(self.side)
        if self.plan.forgets:
            self.device = Storage(self)
            self.events["forgotten"] += 1
        while True:
            self.device.power_off()
            self.device.power_on()
            try:
                self.start()
                return
            except PowerCut:
                heap.settle()

    # Called by links

    def settle(self):
        pass

    def was_read(self, link, packets):
        self.packets_in += len(packets)

    def was_written(self, link):
        for packet in link.parse():
            packet.delivery = None

    def was_closed(self, link):
        pass

    # Called by clients

    def open(self, client, number, level):
        """A client connects."""
        link = Link(self, number, client, level, Weather())
        self.links = [each for each in self.links if not each.closed]
        self.links.append(link)
        self.listener.waiting.append(link)
        return link

    def client_forgot_session(self, client):
        pass

    def received_by_application(self, client, packet):
        self.all.arrived(client, packet)
