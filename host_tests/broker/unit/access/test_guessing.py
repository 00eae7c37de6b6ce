"""Guessing passwords: what it costs others, what it tells, and how long whoever guesses waits."""

import packets5
from login_case import ACCEPTED, BAD_LOGIN, GUESS, PENCIL, TURNS, LoginCase
from packets import connect, publish, subscribe, text

from slotmq import Limits
from slotmq.access import login

NOBODY = {"username": "nobody", "password": b"pencil"}
WAITS = (10, 20, 40, 80, 80)  # tenths of a second after each failure


class TestOthers(LoginCase):
    LIMITS = Limits(connections=8)

    def test_others_are_served_between_two_slices(self):
        """A thousand guesses, four at a time: each message arrives within two turns, and no turn
        computes more than one slice."""
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
                    if job[7]:
                        job[7][4] = 0
            self.world.turn(ms=8000)
            reader.send(b"\xc0\0")
            self.world.turn(2)
            reader.packets()
        self.assertTrue(self.users.computed > 900, self.users.computed)

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
        while self.users.waiting:
            self.world.turn(TURNS, ms=0)
            self.world.turn(ms=8000)
        LoginCase.tearDown(self)


class TestEnumeration(LoginCase):
    def turns(self, **who):
        """How many turns pass until the answer comes, without any earlier failure."""
        self.start()
        client = self.open(connect("a", **who), turns=0)
        for turns in range(1000):
            if client.packets():
                return turns
            self.world.turn()
        return None

    def test_an_unknown_user_costs_the_same_slices_as_a_wrong_password(self):
        known = self.turns(**GUESS)
        self.assertTrue(known and known > 8, known)
        for name in ("nobody", "User", "user ", ""):
            with self.subTest(name=name):
                self.assertEqual(self.turns(username=name, password=b"pen"), known)
        self.assertEqual(self.turns(**PENCIL), known)

    def test_a_file_without_users_takes_as_long(self):
        known = self.turns(**GUESS)
        turns = self.start

        def empty():
            turns("# nobody yet\n")

        self.start = empty
        self.assertEqual(self.turns(**GUESS), known)


class TestWaiting(LoginCase):
    def waits(self, *args, **options):
        """Tenths of a second until a login is computed."""
        self.world.turn(2)
        before = self.broker.now
        client = self.open(connect(*args, **options))
        for _ in range(200):
            if self.users.waiting and self.users.waiting[0][7]:
                break
            if client.stream.received:
                break
            self.world.turn(ms=100)
        waited = self.broker.now - before
        self.settle()
        return waited, client

    def near(self, waited, wanted):
        """The timers look five times a second."""
        self.assertTrue(wanted - 2 <= waited <= wanted + 2, (waited, wanted))

    def test_each_failure_doubles_the_wait_up_to_a_bound(self):
        self.assertEqual(self.answer("a", **GUESS), [BAD_LOGIN])
        for wanted in WAITS:
            waited, client = self.waits("a", **GUESS)
            self.near(waited, wanted)
            self.assertEqual(client.packets(), [BAD_LOGIN])
        self.assertEqual(self.users.delayed, len(WAITS))

    def test_the_right_password_waits_too_and_then_comes_in(self):
        self.answer("a", **GUESS)
        waited, client = self.waits("a", **PENCIL)
        self.near(waited, WAITS[0])
        self.assertEqual(client.packets(), [ACCEPTED])

    def test_a_password_that_was_verified_before_never_waits(self):
        self.answer("a", **PENCIL)
        for _ in range(3):
            self.answer("b", **GUESS)
        self.assertEqual(self.open(connect("c", **PENCIL)).packets(), [ACCEPTED])

    def test_a_user_waits_whatever_the_address(self):
        self.answer("a", **GUESS)
        keys = self.users.failure_keys
        keys[: len(keys) // 2] = bytes(len(keys) // 2)  # another address
        waited, _ = self.waits("a", **PENCIL)
        self.near(waited, WAITS[0])

    def test_an_address_waits_whatever_the_user(self):
        self.answer("a", **NOBODY)
        waited, _ = self.waits("a", **PENCIL)
        self.near(waited, WAITS[0])

    def test_an_address_waits_a_second_at_most(self):
        for _ in range(5):
            self.answer("a", **GUESS)
        waited, client = self.waits("b", username="other", password=b"pencil")
        self.near(waited, WAITS[0])
        self.assertEqual(client.packets(), [ACCEPTED])

    def test_a_user_without_failures_comes_before_others_of_its_address(self):
        for _ in range(2):
            self.answer("a", **GUESS)
        bad = [self.open(connect(f"bad{number}", **GUESS)) for number in range(2)]
        good = self.open(connect("good", username="other", password=b"pencil"))
        for _ in range(400):
            self.world.turn(4, ms=25)
            if good.stream.received:
                break
        self.assertEqual(good.packets(), [ACCEPTED])
        self.assertEqual([client.packets() for client in bad], [[], []])
        self.settle()

    def test_the_log_says_who_waits(self):
        self.answer("a", **GUESS)
        self.waits("b", **PENCIL)
        self.assertEqual(len([line for line in self.lines if "Login of u'user'" in line]), 1)

    def test_who_has_waited_a_minute_begins_anew(self):
        for _ in range(3):
            self.answer("a", **GUESS)
        self.world.turn(700, ms=100)
        self.answer("a", **GUESS)
        waited, _ = self.waits("a", **GUESS)
        self.near(waited, WAITS[0])

    def test_many_names_from_one_address_do_not_make_it_forgotten(self):
        for number in range(20):
            self.users.failed = -1
            login.failed(self.broker, 0, b"name%d" % number)
        waited, _ = self.waits("a", **PENCIL)
        self.near(waited, 0)  # of another address: connection 0 had none
        self.answer("a", **GUESS)
        for number in range(20):
            login._punish(self.broker, 8, b"name%4d" % number)
        waited, _ = self.waits("b", username="other", password=b"pencil")
        self.near(waited, WAITS[0])

    def test_the_table_is_bounded(self):
        size = len(self.users.failure_keys)
        for number in range(100):
            login._punish(self.broker, 0, b"addr%04d" % (number % 10))
        self.assertEqual(len(self.users.failure_keys), size)

    def test_a_login_by_scram_waits_too(self):
        self.answer("a", **GUESS)
        method = b"\x15" + text("SCRAM-SHA-256") + b"\x16" + text("n,,n=user,r=abc")
        client = self.open(packets5.connect("a", method))
        self.assertEqual((client.packets(), len(self.users.waiting)), ([], 1))
        self.world.turn(12, ms=100)
        self.assertEqual(client.packets()[0][0], 0xF0)

    def test_a_wrong_proof_by_scram_counts(self):
        method = b"\x15" + text("SCRAM-SHA-256") + b"\x16" + text("nonsense")
        client = self.open(packets5.connect("a", method))
        self.assertEqual(client.packets()[0][3], 0x87)
        self.assertIn("wrong password or unknown user", self.lines[-1])
        self.assertEqual(self.users.refused, 1)
        waited, _ = self.waits("a", **PENCIL)
        self.near(waited, WAITS[0])
