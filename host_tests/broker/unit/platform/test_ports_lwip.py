"""lwIP's memory on the rp2 port's sockets (host_tests/support/ports/rp2_socket.py)."""

import unittest

from broker_on_board import BrokerOnBoard
from rp2_socket import ENOBUFS, Board


class TestLwip(unittest.TestCase):
    def setUp(self):
        self.world = BrokerOnBoard(Board())
        self.world.listen("0.0.0.0", 1883)

    def tearDown(self):
        self.world.end()

    def test_a_client_that_does_not_read_uses_the_memory_of_all(self):
        # extmod/modlwip.c, lwip_tcp_send: a healthy client waits for one that does not read.
        board = self.world.board
        stuck, healthy = self.world.client("stuck"), self.world.client("healthy")
        stream = self.world.broker.conns.stream
        stuck.peer.stop()
        healthy.peer.rtt_ms = 10
        for _ in range(12):
            self.assertEqual(stream[0].write(bytes(500), 0, 500), 500)
        self.assertTrue(6000 < board.memory_used <= 8000)
        stream[1].write(bytes(500), 0, 500)
        before = len(healthy.peer.received) + 500
        board.later(3000, lambda: calls.append(board.clock.ms))
        calls = []
        begin = board.clock.ms
        self.assertEqual(stream[1].write(bytes(1000), 0, 1000), 1000)
        self.assertEqual(board.waits, [10000])
        self.assertEqual(calls, [begin + 3000])
        board.pass_time(100)
        self.assertEqual(len(healthy.peer.received), before)  # not 1,000 more
        board.no_memory = ENOBUFS
        with self.assertRaises(OSError):
            stream[1].write(bytes(1000), 0, 1000)

    def test_the_control_block_has_the_free_space_of_the_send_buffer(self):
        board = self.world.board
        self.world.client("one").peer.stop()
        sock = self.world.broker.conns.stream[0]
        block = board.mem32[id(sock) + 4]
        before = [board.mem16[block + 2 * k] for k in range(100)]
        sock.write(bytes(300), 0, 300)
        after = [board.mem16[block + 2 * k] for k in range(100)]
        found = [k for k in range(99) if before[k] - after[k] == 300 and after[k + 1] == 1]
        self.assertEqual(found, [72])
