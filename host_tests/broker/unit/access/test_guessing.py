"""Guessing passwords: what it costs others, what it tells, and how long whoever guesses waits."""

import binascii

import packets5
import scram_client
from login_case import (
    ACCEPTED,
    BAD_LOGIN,
    FILE,
    GUESS,
    KEYS,
    MUST_WAIT,
    PENCIL,
    TURNS,
    LoginCase,
)
from packets import connect, publish, subscribe, text

from slotmq import Broker, Limits, Settings
from slotmq.access import login
from slotmq.platform.runtime import MICROPYTHON

WAITS = (0, 10, 20, 40, 80, 80)  # tenths of a second before each guess of a user
FREE = 8  # rows of each kind in the table of failures, at least


def sockaddr6(address):
    """What MicroPython for Linux has for a client: a struct sockaddr_in6; address: in hex."""
    data = bytes((10, 0, 0xC3, 0x8B)) + bytes(4) + binascii.unhexlify(address)
    return bytearray(data + bytes(4))


NOT_LOOKED_AT = "its password was not looked at, 1 s more: failures of this user at this address"


class TestOthers(LoginCase):
    LIMITS = Limits(connections=8)

    def test_others_are_served_between_two_slices(self):
        """A thousand guesses, four at a time: each message arrives within two turns, and no turn
        computes more than one slice."""
        self.start(login_delay_max=0)
        reader = self.open(connect("r", **PENCIL) + subscribe(1, "t", 0))
        self.settle()
        reader.packets()
        slices = self.count_slices()
        guesses, clients = 0, []
        while guesses < 1000:
            clients = [each for each in clients if not each.stream.closed]
            while len(clients) < 4:
                guesses += 1
                who = {"username": f"user{guesses}", "password": b"guess"}
                clients.append(self.open(connect(f"g{guesses}", **who), turns=0))
            reader.send(publish("t", b"%d" % guesses))
            before = slices[0]
            self.world.turn(2)
            self.assertEqual(reader.packets(), [publish("t", b"%d" % guesses)])
            self.assertTrue(slices[0] - before <= 2, slices[0] - before)
            if slices[0] > 40:  # the rest of it costs only time
                for job in self.users.waiting:
                    if job[5]:
                        job[5][4] = 0
        self.assertTrue(self.users.computed > 900, self.users.computed)

    def test_a_full_broker_with_a_client_that_guesses_and_retries(self):
        """All slots but one are in use. Clients with old passwords come again at once, and a few
        with new guesses; a client that was there before and a new one get in."""
        self.answer("v", **PENCIL)[0]
        for turn in range(20):
            bad = [self.open(connect(f"b{number}", **GUESS)) for number in range(6)]
            self.open(connect("verified", **PENCIL))
            bad.append(self.open(connect("new guess", username="user", password=b"x%d" % turn)))
            self.settle()
            self.assertEqual([client.stream.closed for client in bad], [True] * len(bad))
        self.host = "192.0.2.8"
        self.assertEqual(self.answer("new", username="other", password=b"pencil"), [ACCEPTED])

    def test_addresses_take_turns(self):
        """A first login waits for the one that is computed, and for one of each other address:
        whoever has many waiting, and comes again, comes behind it."""
        unknown = [0]

        def stranger(host):
            unknown[0] += 1
            self.host = host
            name = f"u{unknown[0]}"
            return self.open(connect(name, username=name, password=b"x"), turns=1)

        for more in ((), ("198.51.100.1",), ("198.51.100.1", "198.51.100.2")):
            with self.subTest(more=more):
                self.start(login_delay_max=0)
                many = [stranger("192.0.2.7") for _ in range(5 - len(more))]
                many += [stranger(host) for host in more]
                self.host = "192.0.2.8"
                client = self.open(connect("first", **PENCIL), turns=1)
                while not client.stream.received:
                    self.world.turn(ms=0)
                    if many[0].stream.closed:
                        many[0] = stranger("192.0.2.7")
                self.assertEqual(client.packets(), [ACCEPTED])
                self.assertEqual(self.users.computed, 2 + len(more))
                self.settle()

    def test_an_address_leaves_connections_to_others(self):
        """Clients that send CONNECT and are gone, as fast as they can."""
        self.start(login_delay_max=0)
        self.host = "192.0.2.7"
        who = [{"username": f"u{n}", "password": b"x"} for n in range(20)]
        many = [self.open(connect(f"c{n}", **each), turns=1) for n, each in enumerate(who)]
        self.assertEqual(len(self.users.waiting), 8)
        self.assertTrue(sum(each.stream.closed for each in many) >= self.broker.conns.refused > 3)
        self.host = "192.0.2.8"
        self.assertEqual(self.answer("first", **PENCIL), [ACCEPTED])

    def test_an_address_is_served_in_order(self):
        order = []
        clients = [
            self.open(connect(name, username=name, password=b"x"), turns=1) for name in "abcde"
        ]
        for _ in range(5 * TURNS):
            self.world.turn(ms=0)
            ended = [k for k, each in enumerate(clients) if each.stream.closed]
            order += [k for k in ended if k not in order]
        self.assertEqual(order, [0, 1, 2, 3, 4])

    def count_slices(self):
        advance = login.advance
        slices = [0]

        def counted(work):
            slices[0] += 1
            return advance(work)

        login.advance = counted
        self.restore = advance
        return slices

    def tearDown(self):
        login.advance = getattr(self, "restore", login.advance)
        LoginCase.tearDown(self)


class TestEnumeration(LoginCase):
    def turns(self, *before, **who):
        """How many turns pass until the answer comes, and the answer. before: logins before it."""
        self.start()
        for other in before:
            self.answer("a", **other)
        client = self.open(connect("a", **who), turns=0)
        for turns in range(1000):
            found = client.packets()
            if found:
                return turns, found
            self.world.turn()
        return None

    def test_an_unknown_user_costs_the_same_slices_as_a_wrong_password(self):
        known = self.turns(**GUESS)
        self.assertTrue(known[0] > 8, known)
        for name in ("nobody", "User", "user ", ""):
            with self.subTest(name=name):
                self.assertEqual(self.turns(username=name, password=b"pen"), known)
        self.assertEqual(self.turns(**PENCIL), (known[0], [ACCEPTED]))

    def test_an_unknown_user_costs_what_most_users_cost(self):
        """One user with many iterations must not make each unknown name cost them."""
        dear = "dear:200000:" + KEYS.partition(":")[2]
        for lines in (FILE + dear, dear + "\n" + FILE, FILE.replace("4096", "5000") + dear):
            self.start(lines)
            found = {self.users.made_up(b"nobody%d" % k)[1] for k in range(50)}
            self.assertEqual(found, {5000 if ":5000:" in lines else 4096})

    def test_so_it_does_if_it_comes_again_or_must_wait(self):
        for password, code in ((b"pen", BAD_LOGIN), (b"other", MUST_WAIT)):
            who = [{"username": name, "password": b"pen"} for name in ("user", "nobody")]
            known, unknown = [self.turns(each, **dict(each, password=password)) for each in who]
            self.assertEqual(unknown, known)
            self.assertEqual((known[0] <= 3, known[1]), (True, [code]))

    def test_a_file_without_users_takes_as_long(self):
        known = self.turns(**GUESS)
        turns = self.start

        def empty():
            turns("# nobody yet\n")

        self.start = empty
        self.assertEqual(self.turns(**GUESS), known)


class TestLog(LoginCase):
    def test_whoever_guesses_does_not_fill_it(self):
        self.start(login_delay_max=0)
        for guess in range(30):
            self.answer(f"g{guess}", username="user")
        refused = [line for line in self.lines if "refused" in line]
        self.assertEqual(len(refused), 10)
        self.assertIn("no password", refused[0])
        self.world.turn(ms=10000)
        self.answer("later", username="user")
        self.assertIn("Left out: 20 lines about logins", self.lines[-2])
        self.assertIn("no password", self.lines[-1])
        self.assertEqual(self.users.refused, 31)


class Guesses(LoginCase):
    def fails(self, name="user", times=1):
        """Wrong passwords of a user, as soon as each may be computed."""
        for _ in range(times):
            self.count = getattr(self, "count", 0) + 1
            who = {"username": name, "password": b"guess %d" % self.count}
            while (said := self.answer("a", **who)) == [MUST_WAIT]:
                self.world.turn(ms=100)
            self.assertEqual(said, [BAD_LOGIN])


class TestDelays(Guesses):
    def waits(self, **who):
        """Tenths of a second until a login is not refused for now; what it is told then."""
        before = self.broker.now
        while (said := self.answer("a", **who)) == [MUST_WAIT]:
            self.world.turn(ms=100)
        return self.broker.now - before, said

    def test_a_user_s_wait_doubles_up_to_a_bound(self):
        for number, wanted in enumerate(WAITS):
            waited, _ = self.waits(username="user", password=b"guess %d" % number)
            self.assertTrue(abs(waited - wanted) <= 2, (waited, wanted))
        self.assertEqual(self.users.computed, len(WAITS))

    def test_nobody_is_kept_for_a_delay(self):
        self.fails()
        client = self.open(connect("a", **PENCIL))
        self.assertEqual((client.packets(), self.users.waiting), ([MUST_WAIT], []))
        client = self.open(connect("a", level=5, properties=b"", **PENCIL))
        self.assertEqual(client.packets()[0][3], 0x89)
        self.assertEqual((self.users.delayed, self.users.refused), (2, 1))

    def test_a_burst_drains_at_once(self):
        """The first failure delays its user, so the others of it are not computed."""
        guesses = [
            self.open(connect(f"c{n}", username="user", password=b"%d" % n)) for n in range(4)
        ]
        self.settle()
        said = [client.packets() for client in guesses]
        self.assertEqual(said, [[BAD_LOGIN], [MUST_WAIT], [MUST_WAIT], [MUST_WAIT]])
        self.assertEqual(self.users.computed, 1)

    def test_the_right_password_waits_too_and_then_comes_in(self):
        self.fails()
        waited, said = self.waits(**PENCIL)
        self.assertTrue(abs(waited - 10) <= 2, waited)
        self.assertEqual(said, [ACCEPTED])

    def test_a_password_that_was_verified_before_never_waits(self):
        self.answer("a", **PENCIL)
        self.fails(times=3)
        self.assertEqual(self.open(connect("c", **PENCIL)).packets(), [ACCEPTED])

    def test_guesses_from_elsewhere_delay_nobody(self):
        self.fails(times=5)
        self.host = "192.0.2.8"
        self.assertEqual(self.answer("a", **PENCIL), [ACCEPTED])
        self.assertEqual(self.users.delayed > 0, True)

    def test_an_address_of_ipv6_is_its_first_64_bits(self):
        other = "2001:db8:0:2::7"
        rows = [
            ("2001:db8:0:1::7", "2001:db8:0:1:ffff:1:2:3", other),
            ("2001:db8::7", "2001:db8::1:0:0:9", other),
            ("2001:db8::7:0:0:0:1", "2001:db8:0:7:1::", "2001:db8::7"),
            ("::1", "::2:0:0:1", "0:0:0:1::1"),
            ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::", "2001:db8:1:3::"),
            ("fe80::1%eth0", "fe80::2%eth0", "192.0.2.1"),
            ("::ffff:192.0.2.1", "::ffff:192.0.2.1", "::ffff:192.0.2.2"),
        ]
        if MICROPYTHON:
            nets = "01" + "0" * 16, "01" + "a" * 16, "02" + "a" * 16
            rows.append([sockaddr6("20010db8000000" + net) for net in nets])
            rows.append([sockaddr6("0" * 20 + "ffffc00002" + end) for end in ("01", "01", "02")])
        for host, near, far in rows:
            with self.subTest(host=host):
                self.start()
                self.host = host
                self.fails()
                self.host = far
                self.assertEqual(self.answer("a", **PENCIL), [ACCEPTED])
                self.users.set_verified(self.users.find(b"user"), bytes(32))
                self.host = near
                self.assertEqual(self.answer("a", **PENCIL), [MUST_WAIT])

    def test_a_user_waits_at_each_address_with_failures(self):
        self.host = "192.0.2.8"
        self.fails("nobody")
        self.host = "192.0.2.7"
        self.fails(times=3)
        self.host = "192.0.2.8"
        waited, _ = self.waits(**PENCIL)
        self.assertTrue(abs(waited - 40) <= 2, waited)

    def test_guesses_at_other_users_delay_nobody_at_their_address(self):
        for number in range(20):
            self.fails(f"name{number}")
        self.assertEqual(self.answer("o", username="other", password=b"pencil"), [ACCEPTED])

    def test_a_minute_later_it_is_forgotten(self):
        for number in range(FREE):
            self.fails(f"name{number}")
        self.fails(times=3)
        self.world.turn(700, ms=100)
        self.fails()
        waited, _ = self.waits(**PENCIL)
        self.assertTrue(abs(waited - 10) <= 2, waited)

    def test_login_delay_max_0_turns_all_off(self):
        self.start(login_delay_max=0)
        for number in range(2 * FREE):
            who = {"username": "user", "password": b"%d" % number}
            self.assertEqual(self.answer("a", **who), [BAD_LOGIN])
        self.assertEqual(self.users.delayed, 0)

    def test_the_log_says_who_must_wait_at_a_bounded_rate(self):
        self.fails()
        self.answer("a", **PENCIL)
        said = "Client 'a' [192.0.2.7:50123, p4, u'user'] refused: server unavailable (return "
        self.assertEqual(self.lines[-1], said + f"code 3), {NOT_LOOKED_AT}.")
        self.world.turn(101, ms=100)
        for number in range(30):
            self.answer("a", username=f"name{number}", password=b"x")
        self.assertEqual(len(self.lines), 2 + 10)


class TestKnownWrong(LoginCase):
    def test_a_password_that_is_known_to_be_wrong_costs_and_delays_nothing(self):
        self.assertEqual(self.answer("a", **GUESS), [BAD_LOGIN])
        for _ in range(30):
            self.assertEqual(self.open(connect("a", **GUESS)).packets(), [BAD_LOGIN])
            self.world.turn(ms=100)
        self.assertEqual(self.answer("a", **PENCIL), [ACCEPTED])
        users = self.users
        self.assertEqual((users.computed, users.refused, users.delayed), (2, 31, 0))

    def test_it_is_of_its_user(self):
        self.answer("a", **GUESS)
        self.answer("a", username="other", password=b"pen")
        self.assertEqual(self.users.computed, 2)

    def test_the_one_that_was_not_repeated_for_longest_makes_way(self):
        self.start(login_delay_max=0)
        rows = len(self.users.failure_until) // 3
        self.answer("a", **GUESS)
        for number in range(rows):
            self.answer("a", username="other", password=b"x%d" % number)
            self.world.turn(ms=100)
            self.answer("a", **GUESS)
            self.world.turn(ms=100)
        self.assertEqual(self.users.computed, rows + 1)
        self.answer("a", username="other", password=b"x0")
        self.assertEqual(self.users.computed, rows + 2)


class TestRows(Guesses):
    def test_their_number_is_bounded(self):
        self.start(login_delay_max=0)
        size = len(self.users.failure_keys)
        for number in range(3 * size // 8):
            self.answer("a", username=f"user{number}", password=b"x")
        self.assertEqual(len(self.users.failure_keys), size)

    def test_a_computer_has_more_of_them(self):
        rows = []
        for n in (4, 8, 32):
            limits = Limits(connections=n, sessions=n)
            users = Broker(limits, Settings(password_file=self.path)).users
            rows.append(len(users.failure_until) // 3)
        self.assertEqual(rows, [8, 8, 32])

    def test_other_names_do_not_make_one_forgotten_that_must_wait_longer(self):
        self.fails(times=3)
        for number in range(2 * FREE):
            self.host = f"198.51.100.{number % 4}"
            self.answer("a", username=f"more{number}", password=b"x")
        self.host = LoginCase.host
        self.assertEqual(self.answer("a", **PENCIL), [MUST_WAIT])


class TestScram(LoginCase):
    LIMITS = Limits(connections=20, sessions=20)  # those that were refused linger
    WRONG = bytes(32)  # a key

    def begin(self, name=b"user"):
        client = self.open(scram_client.connect("a", name))
        return client, scram_client.answer(client.packets()[0])

    def end(self, exchange, name=b"user", **key):
        """The reason code of CONNACK."""
        client, said = exchange
        client.send(scram_client.auth(scram_client.final(name, said, **key)))
        self.world.turn(3)
        return client.packets()[0][3]

    def test_a_wrong_proof_delays_its_user_at_this_address(self):
        self.assertEqual(self.end(self.begin(), key=self.WRONG), 0x87)
        self.assertTrue("wrong password or unknown user" in self.lines[-1], self.lines[-1])
        self.assertEqual(self.answer("a", **PENCIL), [MUST_WAIT])
        self.assertEqual((self.users.refused, self.users.delayed), (1, 1))

    def test_guesses_side_by_side_are_not_computed_either(self):
        """Nor is the right password: it would tell which guess is right."""
        exchanges = [self.begin() for _ in range(4)]
        codes = [self.end(each, key=self.WRONG) for each in exchanges[:3]]
        codes.append(self.end(exchanges[3]))
        self.assertEqual(codes, [0x87, 0x89, 0x89, 0x89])
        said = f"server busy (reason 0x89), {NOT_LOOKED_AT}."
        self.assertTrue(said in self.lines[-1], self.lines[-1])
        self.assertEqual((self.users.refused, self.users.delayed), (1, 3))
        self.world.turn(11, ms=100)
        self.assertEqual(self.end(self.begin()), 0)

    def test_guesses_from_elsewhere_delay_nobody(self):
        self.end(self.begin(), key=self.WRONG)
        self.host = "192.0.2.8"
        self.assertEqual(self.end(self.begin()), 0)

    def test_a_first_message_that_is_wrong_counts_for_its_address(self):
        method = scram_client.METHOD + b"\x16" + text("nonsense")
        client = self.open(packets5.connect("a", method))
        self.assertEqual(client.packets()[0][3], 0x87)
        self.assertEqual(self.users.refused, 1)

    def test_a_client_stays_the_user_that_it_was_let_in_as(self):
        exchange = self.begin()
        client = exchange[0]
        self.assertEqual(self.end(exchange), 0)
        for name, code in ((b"user", 0), (b"other", 0x87)):
            client.send(scram_client.auth(scram_client.first(name), scram_client.AGAIN))
            self.world.turn(3)
            said = scram_client.answer(client.packets()[0])
            client.send(scram_client.auth(scram_client.final(name, said)))
            self.world.turn(3)
            self.assertEqual(client.packets()[0][2], code)
