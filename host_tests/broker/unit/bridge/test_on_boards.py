"""A bridge on the fakes of the ports' sockets (host_tests/support/ports): its name is looked up,
it connects, and the link goes and comes, while the board's clients are served."""

import sys
import unittest

import bridge_case
import esp32_socket
import rp2_socket
from broker_on_board import BrokerOnBoard
from packets import PINGREQ, PINGRESP

from slotmq import Limits
from slotmq.bridge import link

PORTS = "rp2 1.25", "rp2 1.28", "esp32"
NAME, HOST, SERVER = "cloud.example", "192.0.2.9", "192.168.1.1"


def board_of(port):
    if port == "esp32":
        return esp32_socket.Board()
    return rp2_socket.Board((1, 28) if port == "rp2 1.28" else (1, 25))


class Network:
    """What the module `network` says of the name server."""

    def __init__(self, server):
        self.server = server

    def ipconfig(self, what):
        assert what == "dns"
        return self.server


class Errno:
    def __init__(self, board):
        self.EINPROGRESS = board.EINPROGRESS


class Remote(bridge_case.Remote):
    """The other broker, on a connection that the board has dialled."""

    def __init__(self, peer, held=None):
        super().__init__(peer, held)
        self.send = peer.send


class BoardCase(unittest.TestCase):
    NAMES = "errno", "socket", "network"
    MADE = "slotmq.platform.dns", "slotmq.platform.dial_micropython"

    def begin(self, port, server=SERVER):
        """A board with a listener, whose modules the bridge sees."""
        self.board = board = board_of(port)
        board.names = self.answer
        board.servers.append((HOST, 1883))
        self.kept = [(name, sys.modules.get(name)) for name in self.NAMES + self.MADE]
        self.functions = link.find, link.dial
        for name in self.MADE:
            sys.modules.pop(name, None)
        self.world = BrokerOnBoard(board, Limits(connections=4))
        sys.modules["errno"], sys.modules["socket"] = Errno(board), board
        sys.modules["network"] = Network(server)
        made = __import__(self.MADE[1], None, None, ["dial"])
        self.restore(1)
        link.find, link.dial = made.find, made.dial
        self.broker = self.world.broker
        self.world.listen("0.0.0.0", 1883)
        self.answers = True

    def end(self):
        self.broker.log_mask = 0
        for each in self.broker.bridges.every:
            self.broker.end(each.conn, 9)
        self.world.end()
        link.find, link.dial = self.functions
        self.restore(len(self.kept))

    def restore(self, count):
        for name, module in self.kept[:count]:
            sys.modules.pop(name, None)
            if module:
                sys.modules[name] = module

    def on_each(self, **options):
        for port in PORTS:
            self.begin(port, **options)
            try:
                yield port
            finally:
                self.end()

    def bridge(self, *topics, address=NAME, **options):
        quiet = {"notifications": False, "bridge_attempt_unsubscribe": False}
        options = {"remote_clientid": "edge", "restart_timeout": 1} | quiet | options
        self.one = self.broker.bridge("up", [address], topics, **options)

    def answer(self, asked):
        """The name server."""
        if not self.answers or b"\5cloud\7example\0" not in asked:
            return None
        record = b"\xc0\x0c\0\1\0\1\0\0\0\x3c\0\4" + bytes(map(int, HOST.split(".")))
        return asked[:2] + b"\x81\x80\0\1\0\1\0\0\0\0" + asked[12:] + record

    def remote(self, answer=bridge_case.ACCEPTED, held=None):
        """The other end of the newest connection, once CONNECT is there and answered."""
        count = len(self.board.dialled)
        while len(self.board.dialled) == count and self.one.state != 2:
            self.world.run(100)
        remote = Remote(self.board.dialled[-1], held)
        self.world.run(100)
        self.assertEqual([data[0] for data in remote.packets()], [0x10])
        remote.send(answer)
        self.world.run(100)
        return remote

    def deliver(self, remote):
        for _ in range(8):
            remote.receive()
            self.world.run(20)


class TestNames(BoardCase):
    def test_a_name_is_looked_up_while_clients_are_served(self):
        for port in self.on_each():
            self.answers = False
            client = self.world.client("c")
            self.bridge(("a/#", "out", 1))
            for _ in range(7):
                client.send(PINGREQ)
                self.world.run(500)
                self.assertEqual(client.packets(), [PINGRESP], port)
            self.assertEqual((len(self.board.asked), self.one.text()), (2, "waiting"))
            self.assertEqual(len({asked[2:] for asked in self.board.asked}), 1)
            self.answers = True
            remote = self.remote()
            self.assertEqual((len(self.board.asked), self.board.udp), (3, []))
            self.broker.publish("a/x", b"x", 1)
            self.deliver(remote)
            self.assertEqual(remote.messages, [(b"a/x", b"x", 1)])

    def test_no_answer_no_such_name_and_no_name_server_are_tried_again(self):
        lines = []
        for server, text in ((SERVER, "does not answer"), ("0.0.0.0", "no name server")):
            for _ in self.on_each(server=server):
                self.answers = False
                self.broker.log = lambda bit, text: lines.append(text)
                self.broker.log_mask = 2
                self.bridge(("a/#",))
                self.world.run(8500)
                self.assertIn(text, lines[0])
                self.assertLess(len(self.board.udp), 2)
                lines.clear()
        for _ in self.on_each():
            self.board.names = lambda asked: self.answer(asked)[:-16]
            self.broker.log = lambda bit, text: lines.append(text)
            self.broker.log_mask = 2
            self.bridge(("a/#",))
            self.world.run(500)
            self.assertIn("cloud.example:1883 (no such host)", lines[0])
            self.assertEqual(self.board.udp, [])
            self.board.names = self.answer
            self.remote()
            lines.clear()

    def test_an_address_in_digits_and_a_name_that_is_none(self):
        for port in self.on_each():
            for host in ("a..b", "x" * 64):
                self.bridge(("a/#",), address=host, remote_clientid=host[:3])
                self.world.run(500)
                self.assertEqual(self.one.text(), "waiting", port)
                self.one.due = 1 << 29
            self.assertEqual((self.board.asked, self.board.udp), ([], []))
        for _ in self.on_each():
            self.bridge(("a/#",), address=HOST)
            self.remote()
            self.assertEqual((self.one.text(), self.board.asked), ("up", []))

    def test_ipv6_on_an_esp32_is_refused(self):
        self.begin("esp32")
        lines = []
        self.broker.log = lambda bit, text: lines.append(text)
        self.broker.log_mask = 2
        self.bridge(("a/#",), address="[2001:db8::1]")
        self.world.run(100)
        self.assertIn("IPv6: this port has none", lines[0])
        self.end()


class TestLink(BoardCase):
    def cut(self, remote, how):
        """The link is away; the stack notices that at once, late, or never."""
        self.board.has_link = False
        if how == "vanish":
            remote.stream.vanish()
        else:
            remote.stream.stop()

    def test_what_waits_for_the_link_passes_once_and_in_order(self):
        for port in self.on_each():
            self.bridge(("a/#", "out", 2), keepalive_interval=5)
            remote = self.remote()
            wanted = []
            for number, how in enumerate(("vanish", "silence")):
                self.broker.publish("a/1", b"before %d" % number, 1)
                self.broker.publish("a/2", b"before %d" % number, 2)
                self.world.run(30)
                self.cut(remote, how)
                self.broker.publish("a/1", b"during %d" % number, 1)
                self.broker.publish("a/2", b"during %d" % number, 2)
                client = self.world.client("c")
                for _ in range(12):
                    client.send(PINGREQ)
                    self.world.run(1000)
                    self.assertEqual(client.packets(), [PINGRESP], port)
                client.peer.end()
                self.world.run(100)
                self.assertEqual(self.one.text(), "waiting")
                self.board.has_link = True
                came, held = remote.messages, remote.held
                remote = self.remote(bridge_case.RESUMED, held)
                self.deliver(remote)
                remote.messages = came + remote.messages
                wanted += [b"before %d" % number, b"during %d" % number]
            for qos in (1, 2):
                topic = b"a/%d" % qos
                self.assertEqual(
                    [each[1] for each in remote.messages if each[0] == topic], wanted, port
                )
            self.assertEqual(self.one.losses, 2)
            self.assertEqual(self.broker.deliveries.count[0], 0)

    def test_a_refused_connection_and_no_answer_are_tried_again(self):
        for port in self.on_each():
            self.board.servers.clear()
            client = self.world.client("c")
            self.bridge(("a/#", "out", 1))
            self.world.run(5000)
            self.assertEqual(self.board.dialled, [])
            self.board.SYN_MS = 1 << 29
            self.world.run(70000 if port == "esp32" else 40000)
            client.send(PINGREQ)
            self.world.run(100)
            self.assertEqual(client.packets()[-1:], [PINGRESP])
            self.board.SYN_MS = 30
            self.board.servers.append((HOST, 1883))
            self.broker.publish("a/x", b"x", 1)
            remote = self.remote()
            self.deliver(remote)
            self.assertEqual(remote.messages, [(b"a/x", b"x", 1)], port)

    def test_lazy_on_a_metered_link(self):
        for port in self.on_each():
            self.bridge(("a/#", "out", 1), start_type="lazy", threshold=3, idle_timeout=20)
            for k in range(2):
                self.broker.publish("a/x", b"%d" % k, 1)
                self.world.run(30000)
            self.assertEqual((self.board.asked, self.board.dialled), ([], []), port)
            self.broker.publish("a/x", b"2", 1)
            remote = self.remote()
            self.deliver(remote)
            self.assertEqual(len(remote.messages), 3)
            self.world.run(21000)
            self.assertEqual(remote.packets()[-1:], [b"\xe0\0"])
            self.world.run(60000)
            self.assertEqual((self.one.text(), len(self.board.dialled)), ("waiting", 1))
