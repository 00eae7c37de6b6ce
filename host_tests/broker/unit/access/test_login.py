"""User names and passwords in CONNECT: who comes in, and with which return code."""

import scram_client
from login_case import ACCEPTED, BAD_LOGIN, GUESS, NOT_AUTHORIZED, PENCIL, TURNS, LoginCase
from packets import PINGREQ, PINGRESP, connect, publish, subscribe, text

from slotmq.access import users_file

NAMES = ("user", "other")


class TestCodes(LoginCase):
    def test_the_right_password_in_each_version(self):
        for level, accepted in ((3, ACCEPTED), (4, ACCEPTED)):
            with self.subTest(level=level):
                self.assertEqual(self.answer("a", level=level, **PENCIL), [accepted])
        self.assertEqual(self.answer("a", level=5, **PENCIL)[0][2:4], b"\0\0")
        self.assertEqual((self.users.accepted, self.users.refused), (3, 0))

    def test_wrong_passwords_and_users(self):
        for name, password in (("user", b"pen"), ("nobody", b"pencil"), ("user", b"pencil" * 99)):
            for level in (3, 4, 5):
                with self.subTest(name=name, password=password, level=level):
                    self.start()
                    who = {"username": name, "password": password}
                    said = self.answer("a", level=level, **who)
                    self.assertEqual(said[0][3], 0x86 if level == 5 else 4)
                    self.assertEqual(self.users.refused, 1)

    def test_no_password_is_refused_at_once(self):
        for password in (None, b""):
            for name in ("user", "nobody", ""):
                with self.subTest(name=name, password=password):
                    client = self.open(connect("a", username=name, password=password))
                    self.assertEqual(client.packets(), [BAD_LOGIN])
        self.assertEqual(self.users.computed, 0)

    def test_no_user_name(self):
        self.assertEqual(self.answer("a"), [NOT_AUTHORIZED])
        self.assertEqual(self.answer("a", level=5)[0][3], 0x87)
        self.start(allow_anonymous=True)
        self.assertEqual(self.answer("a"), [ACCEPTED])

    def test_anonymous_clients_may_come_in_but_never_a_wrong_password(self):
        self.start(allow_anonymous=True)
        self.assertEqual(self.answer("a", **GUESS), [BAD_LOGIN])
        self.assertEqual(self.answer("a", username="nobody", password=b"x"), [BAD_LOGIN])

    def test_the_log_says_who_and_why(self):
        for who, why in (
            (GUESS, "bad user name or password (return code 4), wrong password"),
            ({"username": "eve", "password": b"x"}, "(return code 4), unknown user"),
            ({"username": "user"}, "(return code 4), no password"),
            ({}, "not authorized (return code 5), no user name"),
        ):
            with self.subTest(who=who):
                self.answer("a", **who)
                said = "Client 'a' [192.0.2.7:50123, p4"
                self.assertEqual(self.lines[-1][: len(said)], said)
                self.assertTrue(why in self.lines[-1], self.lines[-1])
                user = who.get("username")
                self.assertEqual(f"u'{user}'" in self.lines[-1], user is not None)


class RefusesB:
    """A hook that notes whom it was asked about, and refuses the client b."""

    def __init__(self):
        self.asked = []

    def may_connect(self, *who):
        self.asked.append(who)
        return 5 if who[0] == b"b" else 0


class TestHook(LoginCase):
    def test_a_hook_comes_after_the_file_and_can_only_forbid(self):
        hook = self.broker.hooks = RefusesB()
        self.assertEqual(self.answer("a", **PENCIL), [ACCEPTED])
        self.assertEqual(self.answer("b", **PENCIL), [NOT_AUTHORIZED])
        self.assertEqual(hook.asked, [(name, b"user", b"pencil") for name in (b"a", b"b")])
        self.assertEqual(self.answer("a", **GUESS), [BAD_LOGIN])
        self.assertEqual(len(hook.asked), 2)

    def test_a_hook_is_asked_after_scram_too(self):
        hook = self.broker.hooks = RefusesB()
        for name, code in (("a", 0), ("b", 0x87)):
            client = self.open(scram_client.connect(name))
            said = scram_client.answer(client.packets()[0])
            client.send(scram_client.auth(scram_client.final(b"user", said)))
            self.world.turn(3)
            self.assertEqual(client.packets()[0][3], code)
        self.assertEqual(hook.asked, [(name, b"user", None) for name in (b"a", b"b")])
        self.assertFalse("password" in self.lines[-1], self.lines[-1])

    def test_a_client_of_the_program_needs_no_password(self):
        own = self.broker.client("own")
        self.assertTrue(own.is_connected)
        own.disconnect()


class TestClientId(LoginCase):
    def test_the_user_name_as_client_id(self):
        self.start(use_username_as_clientid=True)
        self.assertEqual(self.answer("a", **PENCIL), [ACCEPTED])
        self.assertEqual(self.broker.sessions.find(b"user", 0, 4) != 0xFFFF, True)
        self.assertEqual(self.broker.sessions.find(b"a", 0, 1), 0xFFFF)

    def test_no_user_name_as_client_id(self):
        self.start(use_username_as_clientid=True, allow_anonymous=True)
        self.assertEqual(self.answer("a"), [NOT_AUTHORIZED])
        self.assertEqual(self.answer("a", level=5)[0][3], 0x87)

    def test_the_user_of_a_login_by_scram_as_client_id(self):
        """The proof is for "user"; CONNECT must not say another name."""
        self.start(use_username_as_clientid=True)
        for name, code in (("user", 0), ("other", 0x87), (None, 0x87)):
            with self.subTest(name=name):
                self.assertEqual(self.by_scram(name)[0][3], code)

    def by_scram(self, username):
        method = b"\x15" + text("SCRAM-SHA-256")
        server = self.broker.five.scram
        server.auth = lambda *_: (setattr(server, "user", b"user"), (0, None))[1]
        return self.answer("a", level=5, username=username, properties=method)

    def test_client_ids_must_begin_with_the_prefix(self):
        self.start(clientid_prefixes=b"dev-", allow_anonymous=True)
        for client_id, code in (("dev-1", 0), ("dev-", 0), ("dev", 5), ("x", 5), ("", 5)):
            with self.subTest(client_id=client_id):
                self.assertEqual(self.answer(client_id)[0][3], code)
        self.assertEqual(self.answer("x", level=5)[0][3], 0x87)

    def test_clients_of_the_program_have_any_client_id(self):
        self.start(clientid_prefixes=b"dev-", use_username_as_clientid=True)
        own = self.broker.client("own")
        self.assertTrue(own.is_connected)
        own.disconnect()

    def test_a_made_up_client_id_has_its_own_prefix(self):
        self.start(clientid_prefixes=b"dev-", auto_id_prefix=b"dev-auto-", allow_anonymous=True)
        self.assertEqual(self.answer(""), [ACCEPTED])


class TestUsersOfOneListener(LoginCase):
    """The listener of these clients has no password_file; per_listener_settings is true."""

    def start_with(self, **options):
        self.start()
        (listener,) = self.world.loop.listeners.listeners
        listener.quota[3] = dict(password_file=None, **options)

    def test_nobody_can_log_in_where_there_are_no_users(self):
        self.start_with()
        self.assertEqual(self.answer("a", **PENCIL), [BAD_LOGIN])
        self.assertEqual(self.answer("a"), [NOT_AUTHORIZED])
        method = b"\x15" + text("SCRAM-SHA-256") + b"\x16" + text("n,,n=user,r=x")
        self.assertEqual(self.answer("a", level=5, properties=method)[0][3], 0x8C)
        self.assertEqual(self.users.computed, 0)

    def test_with_allow_anonymous_everybody_comes_in_whatever_he_sends(self):
        self.start_with(allow_anonymous=True)
        self.assertEqual(self.answer("a", **GUESS), [ACCEPTED])
        self.assertEqual(self.answer("b"), [ACCEPTED])
        self.assertEqual(self.users.computed, 0)

    def test_a_name_that_nobody_has_checked_is_no_user(self):
        self.start_with(allow_anonymous=True)
        self.open(connect("a", **PENCIL))
        session = self.broker.sessions.find(b"a", 0, 1)
        self.assertIsNone(self.broker.owners.name(session))

    def test_a_reload_leaves_them_connected(self):
        self.start_with(allow_anonymous=True)
        self.open(connect("a"))
        users_file.reload(self.broker, lambda *_: None)
        self.assertNotEqual(self.broker.sessions.find(b"a", 0, 1), 0xFFFF)


class TestWaiting(LoginCase):
    def test_packets_behind_the_connect_are_handled_when_it_is_accepted(self):
        more = subscribe(7, "t", 0) + publish("t", b"x") + PINGREQ
        said, _ = self.login("a", more, **PENCIL)
        self.assertEqual(said, [ACCEPTED, b"\x90\x03\0\7\0", publish("t", b"x"), PINGRESP])
        self.assertEqual(self.broker.stats[0], 4)  # each packet is counted once
        self.assertEqual(self.broker.stats[5], len(connect("a", **PENCIL) + more))

    def test_they_are_not_handled_when_it_is_refused(self):
        witness = self.open(connect("w", **PENCIL) + subscribe(7, "t", 0))
        self.settle()
        witness.packets()
        said, client = self.login("a", publish("t", b"x"), **GUESS)
        self.assertEqual(said, [BAD_LOGIN])
        self.assertEqual((witness.packets(), client.stream.closed), ([], True))

    def test_packets_that_come_while_it_waits(self):
        client = self.open(connect("a", **PENCIL))
        self.assertEqual(len(self.users.waiting), 1)
        client.send(PINGREQ)
        self.world.turn(2)
        self.assertEqual(bytes(client.stream.sent), PINGREQ)  # not read
        self.settle()
        self.assertEqual(client.packets(), [ACCEPTED, PINGRESP])

    def test_every_cut_of_what_is_sent(self):
        said = connect("a", **PENCIL) + subscribe(7, "t", 0) + PINGREQ
        for at in range(1, len(said)):
            with self.subTest(at=at):
                self.users.set_verified(self.users.find(b"user"), bytes(32))
                client = self.open(said[:at])
                client.send(said[at:])
                self.settle()
                self.assertEqual(client.packets(), [ACCEPTED, b"\x90\x03\0\7\0", PINGRESP])
                client.stream.ended = True
                self.world.turn(2)

    def test_a_second_connect_behind_the_first_is_an_error(self):
        said, client = self.login("a", connect("a", **PENCIL), **PENCIL)
        self.assertEqual((said, client.stream.closed), ([ACCEPTED], True))

    def test_two_clients_at_once(self):
        right = self.open(connect("a", **PENCIL))
        wrong = self.open(connect("b", username="other", password=b"pen"))
        self.assertEqual(len(self.users.waiting), 2)
        self.settle()
        self.assertEqual((right.packets(), wrong.packets()), ([ACCEPTED], [BAD_LOGIN]))

    def test_a_second_client_of_a_user_needs_no_second_computation(self):
        clients = [self.open(connect(name, **PENCIL)) for name in ("a", "b", "c")]
        self.settle()
        self.assertEqual([client.packets() for client in clients], [[ACCEPTED]] * 3)
        self.assertEqual(self.users.computed, 1)
        self.assertEqual(self.open(connect("d", **PENCIL)).packets(), [ACCEPTED])

    def test_a_client_that_goes_while_it_waits(self):
        first = self.open(connect("a", **GUESS))
        second = self.open(connect("b", username="other", password=b"pencil"))
        first.stream.extra = 16  # HUP
        self.world.turn(2)
        self.assertEqual(len(self.users.waiting), 1)
        self.settle()
        self.assertEqual((first.packets(), second.packets()), ([], [ACCEPTED]))
        self.assertEqual(self.users.refused, 0)

    def test_one_password_is_computed_at_a_time(self):
        for number in range(4):
            self.open(connect(f"c{number}", username=f"user{number}", password=b"x"))
        for _ in range(4 * TURNS):
            self.assertTrue(sum([job[5] is not None for job in self.users.waiting]) <= 1)
            self.world.turn(ms=0)
        self.assertEqual((self.users.waiting, self.users.computed), ([], 4))

    def test_a_client_that_goes_in_the_turn_of_the_last_slice(self):
        client = self.open(connect("a", **GUESS))
        self.users.waiting[0][5][4] = 1
        client.stream.extra = 16  # HUP
        self.world.turn(2)
        self.assertEqual((self.users.waiting, client.stream.closed), ([], True))
        self.assertFalse(any("refused" in line for line in self.lines), self.lines)

    def test_a_cut_packet_behind_it_waits_for_a_buffer(self):
        """All buffers for cut packets are in use when the password has been computed."""
        self.answer("x", **PENCIL)
        self.users.set_verified(self.users.find(b"user"), bytes(32))
        long = publish("t", b"x" * 300, 1, 7)
        owners = [
            self.open(connect(name, username="other", password=b"pencil"))
            for name in ("b", "c")[: self.LIMITS.reassembly]
        ]
        self.settle()
        client = self.open(connect("a", **PENCIL) + long[:200])
        for owner in owners:
            owner.packets()
            owner.send(long[:200])
        self.world.turn(4)
        self.assertEqual(self.broker.conns.reassembly[3], 0)
        self.world.turn(TURNS, ms=0)
        self.assertEqual((client.packets(), len(self.users.waiting)), ([], 1))
        for owner in owners:
            owner.send(long[200:])
        self.world.turn(20, ms=100)
        self.world.turn(TURNS, ms=0)
        client.send(long[200:])
        self.world.turn(4)
        self.assertEqual(client.packets(), [ACCEPTED, b"\x40\x02\0\7"])

    def test_a_takeover_happens_only_after_the_password(self):
        _, first = self.login("a", **PENCIL)
        guess = self.open(connect("a", **GUESS))
        self.assertEqual(first.stream.closed, False)
        self.settle()
        self.assertEqual((guess.packets(), first.stream.closed), ([BAD_LOGIN], False))
        self.users.set_verified(self.users.find(b"user"), b"\0" * 32)  # computed once more
        self.world.turn(12, ms=100)  # the delay after the guess
        right = self.open(connect("a", **PENCIL))
        self.assertEqual(first.stream.closed, False)
        self.settle()
        self.assertEqual((right.packets(), first.stream.closed), ([ACCEPTED], True))

    def test_connect_timeout_does_not_end_it(self):
        """However many iterations a password has, and however many clients come before."""
        for name in (b"user", b"other"):
            self.users.iterations[self.users.find(name)] = 0x3FFFFFFF
        clients = [self.open(connect(name, username=name, password=b"pencil")) for name in NAMES]
        for _ in clients:
            self.world.turn(150, ms=100)  # 15 s
            self.users.waiting[0][5][4] = 1  # one iteration is left
            self.world.turn(2, ms=0)
        self.assertEqual([client.packets() for client in clients], [[BAD_LOGIN]] * 2)
