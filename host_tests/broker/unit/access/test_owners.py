"""With a password_file alone: a session belongs to the user who has logged in."""

from login_case import PENCIL, LoginCase
from packets import PINGREQ, PINGRESP, subscribe

OTHER = {"username": "other", "password": b"pencil"}
PRESENT = b"\x20\x02\1\0"
ACCEPTED = b"\x20\x02\0\0"
BAD_ID = b"\x20\x02\0\2"


class TestOwners(LoginCase):
    def test_another_user_never_takes_a_connected_client_over(self):
        """[MQTT-3.1.4-2] is for the same user."""
        _, first = self.login("phone", **PENCIL)
        self.assertEqual(self.answer("phone", **OTHER), [BAD_ID])
        self.assertEqual(self.answer("phone", level=5, **OTHER)[0][3], 0x85)
        first.send(PINGREQ)
        self.world.turn(2)
        self.assertEqual(first.packets(), [PINGRESP])
        self.assertEqual(self.answer("phone", **PENCIL), [ACCEPTED])
        self.assertTrue(first.stream.closed)

    def test_nor_does_a_client_without_a_user_name(self):
        self.start(allow_anonymous=True)
        _, first = self.login("phone", **PENCIL)
        self.assertEqual(self.answer("phone"), [BAD_ID])
        self.assertFalse(first.stream.closed)

    def test_an_offline_session_of_another_user_is_discarded(self):
        self.login("phone", clean=False, **PENCIL)
        answers, first = self.login("phone", subscribe(1, "a", 1), clean=False, **PENCIL)
        self.assertEqual(answers, [PRESENT, b"\x90\x03\0\1\1"])
        first.stream.ended = True
        self.world.turn(4)
        self.assertEqual(self.broker.subscriptions.count, 1)
        self.assertEqual(self.answer("phone", clean=False, **OTHER), [ACCEPTED])
        self.assertEqual(self.broker.subscriptions.count, 0)
        session = self.broker.sessions.find(b"phone", 0, 5)
        self.assertEqual(self.broker.owners.name(session), b"other")
        self.login("phone", **OTHER)  # clean: nothing stays

    def test_the_rules_are_not_there(self):
        self.assertEqual(self.broker.acl, None)
        self.assertEqual(self.broker.subscriptions.routes.senders, None)
