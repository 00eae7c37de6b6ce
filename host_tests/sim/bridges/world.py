# world.py - two brokers, the link between them, and what must arrive at each client.
#
# Every client is subscribed to everything. Its messages make one row for each topic and QoS, by
# their numbers; what arrives at a client is at each moment the beginning of that row. Of QoS 1 a
# message may come again.
from slotmq_tools.sim.link import ALL, Weather
from slotmq_tools.sim.machine import Clock, Trace
from slotmq_tools.sim.numbers import Numbers

from ..clients import behaviour
from ..event_counts import EventCounts
from ..messages import EVERYTHING, number_of
from ..model.model import PromiseBroken
from .end import End
from .pipe import Pipe
from .plan import FAR, HERE, THERE, Plan
from .table import Table

_MOST_TURNS = 6000  # until everything has arrived
_REFUSED = 111
_CHECK_INTERVAL = 16


class Bridged:
    def __init__(self, seed, steps):
        self.seed = seed
        self.plan = Plan(seed, steps)
        self.numbers = Numbers(seed, 2)
        self.trace = Trace()
        self.clock = Clock(self.plan.clock_base)
        self.events = EventCounts()
        self.steps = self.turns = 0
        mapped = self.plan.has_prefix, False
        self.tables = [Table(("here", "there")[k], self.events, mapped[k]) for k in (HERE, THERE)]
        self.pipes = []  # pairs: here, there
        self.count = 0
        self.frozen = self.down = 0  # until which step
        self.weather, self.rate = self.plan.weather, self.plan.rate
        self.sent = {}  # (client, topic here, QoS): numbers of its messages
        self.came = {}  # client: {the same: how many of them}
        self.by_number = {}
        self.passing = []  # messages that leave here
        self.ends = []
        for side in (THERE, HERE):
            self.ends.insert(0, End(self, side, self.plan.ends[side]))
        self.clients = [client for end in self.ends for client in end.clients]

    @property
    def packets_in(self):
        return sum([end.packets_in for end in self.ends])

    @property
    def packets_out(self):
        return sum([end.packets_out for end in self.ends])

    def _begin(self):
        # All connect and subscribe, and the bridge is up once.
        for client in self.clients:
            client.connect(False)
            self.came[client.plan.name] = {}
        self._turns_until(lambda: all(client.accepted for client in self.clients))
        for client in self.clients:
            client.subscribe([(EVERYTHING[0], None, 2)])
        self._turns_until(lambda: self._is_quiet() and self._is_up())

    # A step

    def step(self):
        """What goes wrong now, what clients do, then a turn of each broker."""
        if not self.steps:
            self._begin()
        self.steps += 1
        while self.plan.cuts and self.plan.cuts[0][0] <= self.steps:
            self.cut(self.plan.cuts.pop(0)[1])
        while self.plan.reboots and self.plan.reboots[0][0] <= self.steps:
            side, kind = self.plan.reboots.pop(0)[1]
            self.ends[side].reboot(kind)
        for client in self.clients:
            behaviour.step(client)
        self._turn(self.numbers.choice(self.plan.times))

    def _turn(self, ms):
        self.turns += 1
        self.clock.ms += ms
        if self.steps >= self.frozen:
            for pair in self.pipes:
                for pipe in pair:
                    if not pipe.reset:
                        pipe.go_on(self.rate)
        self.pipes = [pair for pair in self.pipes if not pair[0].closed or not pair[1].closed]
        for end in self.ends:
            end.turn()
            if self.turns % _CHECK_INTERVAL == 0:
                end.check()

    # The link

    def find(self, host, port, _now):
        return [(host, port)]

    def dial(self, found, bind, nodelay):
        """The bridge connects."""
        self.events["dialled lazy" if self.plan.is_lazy else "dialled"] += 1
        if self.steps < self.down:
            raise OSError(_REFUSED)
        pair = []
        for side in (HERE, THERE):
            number = self.count * 2 + side
            tables = self.tables[side], self.tables[1 - side]
            pair.append(Pipe(self.ends[side], number, self.weather, *tables))
        self.count += 1
        pair[HERE].other, pair[THERE].other = pair[THERE], pair[HERE]
        self.pipes.append(pair)
        self.ends[THERE].listener.waiting.append(pair[THERE])
        return pair[HERE], found

    def cut(self, how):
        """The link fails, see plan.CUTS."""
        self.events[f"cut {how}"] += 1
        if how == "down":
            self.down = self.steps + self.numbers.between(1, 40)
        if how == "frozen":
            self.frozen = self.steps + self.numbers.between(1, 40)
            return
        for pair in self.pipes:
            for side in (HERE, THERE):
                if self.numbers.one_in(2) and not pair[side].reset:
                    pair[side].go_on(self.numbers.below(300))
            for side in (HERE, THERE):
                if how in ("both", "down", self.ends[side].name):
                    pair[side].break_off()
                else:
                    pair[side].vanished = True  # it learns nothing

    def lost_power(self, side):
        """Of the broker at this side; the other one sees that at once, or not at all."""
        for pair in self.pipes:
            pair[side].die()
            if self.numbers.one_in(2):
                pair[1 - side].break_off()
            else:
                pair[1 - side].vanished = True

    # Messages

    def topic_at(self, topic, side):
        """The name that a topic of a client's plan has at this side."""
        return FAR + topic if side == THERE and self.plan.has_prefix else topic

    def published(self, msg, side):
        """A client publishes it, and will until it is acknowledged."""
        if msg.qos:
            key = msg.sender, msg.topic[len(FAR) :] if msg.topic[:4] == FAR else msg.topic, msg.qos
            row = self.sent.setdefault(key, [])
            self.by_number[msg.number] = key, len(row)
            row.append(msg.number)
            if side == HERE:
                self.passing.append(msg)

    def arrived(self, client, packet):
        """An application has got it."""
        number = number_of(packet.payload)
        if number not in self.by_number:
            if packet.qos or number < 1:
                raise PromiseBroken(f"{client.plan.name} got {packet.topic}, which nobody sent")
            return
        key, place = self.by_number[number]
        came = self.came[client.plan.name]
        have = came.get(key, 0)
        self.events["arrived"] += 1
        name = f"message {number} of {key} at {client.plan.name}"
        if packet.topic != self.topic_at(key[1], client.plan.side) or packet.qos != key[2]:
            raise PromiseBroken(f"{name} has the topic {packet.topic} and QoS {packet.qos}")
        if place > have:
            raise PromiseBroken(f"{name} came before {self.sent[key][have]}")
        if place < have:
            if packet.qos == 2:
                raise PromiseBroken(f"{name} came twice")
            self.events["QoS 1 again"] += 1
            return
        came[key] = have + 1

    # The end

    def note(self):
        """For run.py."""

    def end(self):
        """No more faults: everything arrives, and nothing is left in either broker."""
        self.steps += 1000
        self.weather, self.rate = Weather(), ALL
        for pair in self.pipes:
            for pipe in pair:
                pipe.weather = self.weather
        for end in self.ends:
            end.device.calm()
            self.tables[end.side].watched = 0
            end.turn()
        for client in self.clients:
            client.plan.lazy = 0
        self._turns_until(lambda: self._is_up() and self._is_quiet() and not self._missing())
        for end in self.ends:
            end.check()
            if sum(end.broker.sessions.id_count):
                raise PromiseBroken(f"{end.name}: a PUBREL never came")
        lost = [msg for msg in self.passing if msg.payload() not in self.tables[0].handed_over]
        if lost:
            raise PromiseBroken(f"{lost[0]} never came there")
        left = [f"{table.name} {table.open_ids()}" for table in self.tables if table.open_ids()]
        if left:
            raise PromiseBroken(f"never acknowledged: {left}")

    def _turns_until(self, done):
        for _ in range(_MOST_TURNS):
            if done():
                return
            for client in self.clients:
                if client.link is None:
                    client.connect(False)
                behaviour.step_without_faults(client)
            self._turn(50)
        raise PromiseBroken(f"it never ends: {self._missing() or self._states()}")

    def _is_up(self):
        (bridge,) = self.ends[HERE].broker.bridges.every
        return self.plan.is_lazy or (bridge.text() == "up" and bridge.is_told)

    def _is_quiet(self):
        for end in self.ends:
            if end.broker.deliveries.count[0]:
                return False
        return all(client.is_quiet() for client in self.clients)

    def _states(self):
        waiting = [end.broker.deliveries.count[0] for end in self.ends]
        clients = [client.plan.name for client in self.clients if not client.is_quiet()]
        return f"{waiting} deliveries, {clients} busy, bridge up {self._is_up()}"

    def _missing(self):
        missing = []
        for name in sorted(self.came):
            for key in sorted(self.sent):
                lacks = len(self.sent[key]) - self.came[name].get(key, 0)
                if lacks:
                    missing.append(f"{name} lacks {lacks} of {key}")
        return ", ".join(missing)
