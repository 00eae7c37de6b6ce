"""The broker on the fakes of the ports' sockets and pollers (host_tests/support/ports): it starts
and serves, and a listener accepts again after any failure."""

import unittest

import esp32_socket
import rp2_socket
from broker_on_board import CONNACK, BrokerOnBoard
from packets import DISCONNECT, connect, publish, subscribe

from slotmq import Limits
from slotmq.app import start

CONNECTIONS = {"rp2 1.25": 4, "rp2 1.28": 4, "esp32": 7}  # as boards/*/limits.py has them


def board_of(port):
    if port == "esp32":
        board = esp32_socket.Board()
        board.ntp = board.socket(2, 2)  # UDP, for the time
    else:
        board = rp2_socket.Board((1, 28) if port == "rp2 1.28" else (1, 25))
    return BrokerOnBoard(board, Limits(connections=CONNECTIONS[port]))


class App:
    """What start._listen() asks of one."""

    def __init__(self, world):
        self.broker = world


class TestPorts(unittest.TestCase):
    def on_each(self):
        for port in CONNECTIONS:
            self.world = board_of(port)
            yield port, self.world
            self.world.end()

    def tearDown(self):
        self.world.end()

    def asked(self, name):
        client = self.world.knock()
        client.send(connect(name))
        self.world.run(300)
        return b"".join(client.packets())

    def connects_at_last(self, name):
        # A client whose first SYN had no answer tries again.
        world = self.world
        for _ in range(4):
            client = world.knock()
            if client and client.peer.state == "open":
                client.send(connect(name))
                world.run(1500)
                if client.packets() == [CONNACK]:
                    return client
            world.run(4000)
        self.fail("the listener does not accept")
        return None

    def test_the_default_listener(self):
        for port, world in self.on_each():
            opened = start._listen(App(world), {}, start._EVERYWHERE, 1883, 0)
            there = ["0.0.0.0:1883"] if port == "esp32" else ["0.0.0.0:1883", "[::]:1883"]
            self.assertEqual(opened, there)
            self.assertEqual(world.board.printed, [])
            self.assertEqual(len(world.board.listeners), len(there))
            world.client("one")

    def test_a_listener_on_ipv6(self):
        for port, world in self.on_each():
            if port == "esp32":
                with self.assertRaises(OSError):
                    start._listen(App(world), {}, ("::",), 1883, 0)
                self.assertEqual(world.board.listeners, [])
            else:
                start._listen(App(world), {}, ("::",), 1883, 0)
                world.client("one")

    def test_accepted_sockets_have_nodelay(self):
        for _, world in self.on_each():
            world.listen("0.0.0.0", 1883)
            world.client("one")
            sock = world.broker.conns.stream[0]
            pcb = sock.pcb if hasattr(sock, "pcb") else sock
            self.assertTrue(pcb.nodelay)
            self.assertEqual(world.board.printed, [])

    def test_messages_of_each_qos_arrive(self):
        for _, world in self.on_each():
            world.listen("0.0.0.0", 1883)
            reader, writer = world.client("reader"), world.client("writer")
            reader.send(subscribe(1, "a/#", 2))
            world.turn(3)
            self.assertEqual(reader.answer(), [b"\x90\x03\0\1\2"])
            for qos in range(3):
                writer.send(publish(f"a/{qos}", bytes(300), qos, 7 + qos))
                for _ in range(6):
                    world.turn(2)
                    reader.answer()
                    writer.answer()
            expected = [(f"a/{qos}".encode(), bytes(300), qos) for qos in range(3)]
            self.assertEqual(reader.messages, expected)

    def test_an_application_beside_the_clients(self):
        """As in docs/embed.md: a callback that publishes, and a client of the program."""
        for _, world in self.on_each():
            world.listen("0.0.0.0", 1883)
            world.broker.subscribe("door/bell", self.ring, 1)
            client = world.client("switch")
            client.send(subscribe(1, "hall/#", 1))
            world.turn(3)
            client.answer()
            client.send(publish("door/bell", b"", 1, 7))
            world.run(200)
            self.assertEqual(client.answer(), [b"\x40\x02\0\x07"])
            self.assertEqual(client.messages, [(b"hall/light", b"on", 1)])

    def ring(self, *_message):
        self.world.broker.publish("hall/light", b"on", 1)

    def test_after_full_slots_new_clients_are_accepted(self):
        for port, world in self.on_each():
            world.listen("0.0.0.0", 1883)
            most = CONNECTIONS[port]
            clients = [world.client(f"c{n}") for n in range(most)]
            self.assertEqual(self.asked("more"), b"\x20\x02\0\3")
            clients.append(world.knock())  # sends nothing, and takes the last slot
            world.turn(3)
            beyond = world.knock()
            self.assertTrue(beyond is None or beyond.peer.state == "reset")
            world.run(1000)
            clients[0].peer.reset()
            clients[1].peer.end()
            world.run(1000)
            self.assertEqual(world.broker.connected, most - 2)
            self.connects_at_last("new 0")
            self.connects_at_last("new 1")

    def test_clients_that_end_without_disconnect_free_their_sockets(self):
        for port, world in self.on_each():
            world.listen("0.0.0.0", 1883)
            for n in range(3 * CONNECTIONS[port]):
                client = self.connects_at_last(f"c{n}")
                (client.peer.reset, client.peer.end, client.peer.vanish)[n % 3]()
                world.run(300)
            self.assertEqual(world.broker.connected, 0)

    def test_packets_before_a_reset_are_handled(self):
        # esp32: lwIP has it first. (rp2: a reset frees it in the stack, _lwip_tcp_error.)
        self.world = world = board_of("esp32")
        world.listen("0.0.0.0", 1883)
        witness = world.client("witness")
        witness.send(subscribe(1, "#", 0))
        world.turn(3)
        witness.answer()
        last = publish("last", bytes(200), 1, 1) * 3 + DISCONNECT
        for times in (0, 1):
            mortal = world.client("mortal", will=("will", "gone", 0))
            world.board.heap.fail("recv: bytes", times)
            mortal.send(last)
            mortal.peer.reset()
            world.turn(5)
            witness.answer()
            self.assertEqual(world.board.heap.times, 0)
        # without heap for the bytes they are lost
        expected = [(b"last", bytes(200), 0)] * 3 + [(b"will", b"gone", 0)]
        self.assertEqual(witness.messages, expected)
        self.assertEqual(world.broker.connected, 1)

    def points(self, port):
        # the allocations while the first client connects
        self.world = world = board_of(port)
        world.listen("0.0.0.0", 1883)
        world.board.heap.points.clear()
        world.client("first")
        world.end()
        return list(world.board.heap.points)

    def test_a_listener_accepts_again_after_a_memory_error_anywhere(self):
        for port in CONNECTIONS:
            points = self.points(port)
            self.assertTrue("accept: object" in points and "register: entry" in points)
            for point in points:
                for times in (1, 3):
                    if (port, point, times) == ("esp32", "accept: object", 3):
                        continue  # each has cost a descriptor, and they are few
                    with self.subTest(port=port, point=point, times=times):
                        self.fails_at(port, point, times)

    def fails_at(self, port, point, times):
        self.world = world = board_of(port)
        world.listen("0.0.0.0", 1883)
        heap = world.board.heap
        for n in range(2):
            heap.fail(point, times)
            for _ in range(times):
                client = world.knock()
                world.run(500)  # the tick comes several times
                client.peer.reset()
                world.run(300)
            if point != "register: map":  # it grows rarely
                self.assertTrue(heap.times < times)
            heap.fail(None, 0)
            self.connects_at_last(f"c{n}")
        self.assertEqual((world.broker.connected, world.broker.conns.count), (2, 2))
        world.end()

    def test_without_heap_for_a_connection_none_is_accepted(self):
        for _, world in self.on_each():
            world.listen("0.0.0.0", 1883)
            listeners = world.broker.loop.listeners
            world.board.heap.points.clear()

            def full():
                raise MemoryError

            listeners._make_space = full
            client = world.knock()
            client.send(connect("waits"))
            world.run(700)
            self.assertEqual(world.board.heap.points, [])
            self.assertEqual(client.packets(), [])
            del listeners._make_space
            world.run(700)
            self.assertEqual(client.packets(), [CONNACK])

    def test_a_listener_accepts_again_after_an_error_of_the_port(self):
        # ENOMEM, ENOBUFS, EMFILE and newlib's ENFILE: no connection was accepted
        for _, world in self.on_each():
            world.listen("0.0.0.0", 1883)
            listener = world.board.listeners[0]
            accept = listener.accept
            for error in (12, 105, 24, 23):
                calls = []

                def fails(error=error, calls=calls):
                    calls.append(error)
                    raise OSError(error)

                listener.accept = fails
                client = world.knock()
                client.send(connect("waits"))
                world.run(700)
                self.assertEqual(client.packets(), [])
                self.assertTrue(1 < len(calls) < 9, len(calls))  # with each tick, not in each turn
                listener.accept = accept
                world.run(700)
                self.assertEqual(client.packets(), [CONNACK])
                client.peer.reset()
                world.run(300)
