"""A broker with users on a network that the test turns, and what its clients are told."""

import unittest

import scratch
from fakes import Client, Stream, World
from invariants import broken
from packets import connect
from tables import counts

from slotmq import Broker, Limits, Settings
from slotmq.access import pbkdf2

# "user" with the password "pencil" [RFC 7677, 3]; "other" has the same.
KEYS = (
    "4096:W22ZaJ0SNY7soEsUEjb6gQ==:WG5d8oPm3OtcPnkdi4Uo7BkeZkBFzpcXkuLmtbsT4qY=:"
    "wfPLwcE6nTWhTAmQ7tl2KeoiWGPlZqQxSrmfPwDl2dU="
)
FILE = f"user:{KEYS}\nother:{KEYS}\n"
ACCEPTED, BAD_LOGIN, NOT_AUTHORIZED = b"\x20\x02\0\0", b"\x20\x02\0\4", b"\x20\x02\0\5"
MUST_WAIT = b"\x20\x02\0\3"
PENCIL = {"username": "user", "password": b"pencil"}
GUESS = {"username": "user", "password": b"pen"}
TURNS = 700  # more than a password takes on any runtime


class LoginCase(unittest.TestCase):
    LIMITS = Limits(connections=6)
    host = "192.0.2.7"  # of the clients that come

    def setUp(self):
        self.lines = []
        pbkdf2.at_once = 0  # on CPython, too, a password takes slices
        self.start()

    def start(self, file=FILE, **values):
        self.path = scratch.write(file)
        values.setdefault("allow_anonymous", False)
        settings = Settings(sys_interval=0, password_file=self.path, **values)
        self.broker = Broker(self.LIMITS, settings)
        self.users = self.broker.users
        self.world = World(self.broker)
        self.broker.log = lambda bit, line: self.lines.append(line)
        self.broker.log_mask = 4
        self.empty = counts(self.broker)

    def tearDown(self):
        pbkdf2.at_once = 8192
        for stream in list(self.world.loop.of_stream):
            if isinstance(stream, Stream):
                stream.ended = True
        self.settle()
        self.assertEqual(counts(self.broker), self.empty)
        self.assertEqual(self.users.waiting, [])
        self.assertEqual(broken(self.broker), [])

    def settle(self):
        """Turn until no login waits, 20 s at most; while it is computed no time passes."""
        self.world.turn(4)
        for _ in range(200):
            self.world.turn(TURNS, ms=0)
            if not self.users.waiting:
                break
            self.world.turn(ms=100)
        self.world.turn(4)

    def open(self, data, turns=2):
        """A client that has said this."""
        client = Client(Stream())
        is_name = isinstance(self.host, str)
        client.stream.peer = (self.host, 50123) if is_name else self.host
        client.send(data)
        self.world.listener.waiting.append(client.stream)
        self.world.turn(turns)
        return client

    def login(self, client_id, more=b"", level=4, **options):
        """What a client is told that says CONNECT and `more`; the client."""
        if level == 5:
            options.setdefault("properties", b"")
        said = connect(client_id, level=level, **options)
        client = self.open(said + more)
        self.settle()
        return client.packets(), client

    def answer(self, *args, **options):
        return self.login(*args, **options)[0]
