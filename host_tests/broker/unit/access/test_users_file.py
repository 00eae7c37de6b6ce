"""password_file: its lines, and what a reload does to users and to connected clients."""

import binascii
import builtins
import unittest

import scram_client
import scratch
from login_case import ACCEPTED, BAD_LOGIN, FILE, KEYS, PENCIL, LoginCase
from packets import connect

from slotmq import Broker, Limits, Settings
from slotmq.access import users_file
from slotmq.platform.runtime import heap_lock, heap_unlock

_, SALT, STORED, SERVER = KEYS.split(":")
OTHER = KEYS.replace(STORED, SERVER)  # another password


class TestLines(unittest.TestCase):
    def read(self, content, most=8):
        self.path = scratch.write(content)
        return users_file.read(self.path, most)

    def refused(self, content, line, text, most=8):
        with self.assertRaises(ValueError) as caught:
            self.read(content, most)
        said = str(caught.exception)
        self.assertEqual(said.find(f"{self.path}:{line}: expected "), 0, said)
        self.assertTrue(text in said, said)

    def test_a_user(self):
        raw = [binascii.a2b_base64(text.encode()) for text in (SALT, STORED, SERVER)]
        self.assertEqual(self.read(f"user:{KEYS}"), [(b"user", 4096, raw[0], raw[1], raw[2])])

    def test_line_ends_and_blanks(self):
        found = self.read(f"  user:{KEYS}\r\n\r\n # one\nlast:{KEYS}")
        self.assertEqual([row[0] for row in found], [b"user", b"last"])

    def test_a_byte_order_mark(self):
        self.assertEqual(self.read(b"\xef\xbb\xbf" + f"user:{KEYS}".encode())[0][0], b"user")
        self.refused(f"user:{KEYS}\n".encode() + b"\xef\xbb\xbfb:" + KEYS.encode(), 2, "name:iter")

    def test_blanks_and_letters_of_all_languages(self):
        for name in ("living room", "J\u00fcrgen", "\U0001f321"):
            self.assertEqual(self.read(f"{name}:{KEYS}".encode())[0][0], name.encode())

    def test_wrong_lines(self):
        counts = ("", "x", "4095", "-4096", "+4096", "04096", "4_096", "4096.0", "4096 ")
        counts += ("1073741824", "9" * 40)
        salts = ("", "?", SALT + "!", SALT[:-1], "c2FsdA==", STORED[:-1] + "==", "A" * 48)
        keys = ("", SALT, STORED[:-1], STORED + "=", "A" * 40, "A" * 48)
        lines = [f"user:{count}:{SALT}:{STORED}:{SERVER}" for count in counts]
        lines += [f"user:4096:{salt}:{STORED}:{SERVER}" for salt in salts]
        lines += [f"user:4096:{SALT}:{key}:{SERVER}" for key in keys]
        lines += [f"user:4096:{SALT}:{STORED}:{key}" for key in keys]
        lines += [f"{name}:{KEYS}" for name in ("", "us\ter", "us\x7fer", "us:er")]
        lines += ["user", KEYS, f"user:{KEYS}:", b"\xff:" + KEYS.encode()]
        lines += [b"user:\xff\xfe" + KEYS.encode(), b"user:4096:\xff" + KEYS[5:].encode()]
        for line in lines:
            with self.subTest(line=line):
                raw = line if isinstance(line, bytes) else line.encode()
                content = b"good:" + KEYS.encode() + b"\n\n" + raw + b"\n"
                self.refused(content, 3, "name:iterations")

    def test_a_name_twice(self):
        self.refused(f"user:{KEYS}\nuser:{OTHER}\n", 2, "a new name")

    def test_more_users_than_the_limit(self):
        self.read(f"a:{KEYS}\nb:{KEYS}\n", 2)
        self.refused(f"a:{KEYS}\nb:{KEYS}\n#\nc:{KEYS}\n", 4, "at most 2 users, see limit", 2)

    def test_made_up_salts_stay_when_the_users_change(self):
        """A file with a secret of its own: after a restart with other users, too."""
        secret = "#salts:" + SALT[:-2] + "A" * 21 + "=\n"
        made = []
        for users in (f"a:{KEYS}\n", f"a:{OTHER}\nb:{KEYS}\n"):
            for first in ("", "#salts:wrong\n", secret):
                path = scratch.write(first + users)
                broker = Broker(Limits(), Settings(password_file=path))
                made.append(broker.users.made_up(b"nobody")[2])
        self.assertEqual(made[0], made[1])
        self.assertTrue(made[0] != made[3])
        self.assertEqual(made[2], made[5])
        self.assertTrue(made[2] != made[0])

    def test_a_name_that_no_session_can_store(self):
        limits = Limits(client_id_bytes=23)
        path = scratch.write(f"{'a' * 23}:{KEYS}\n{'b' * 24}:{KEYS}\n")
        with self.assertRaises(ValueError) as caught:
            Broker(limits, Settings(password_file=path))
        text = ":2: expected a name of at most 23 bytes, see limit client_id_bytes"
        self.assertEqual(str(caught.exception), path + text)

    def test_lines_of_mosquitto_passwd_on_a_board(self):
        self.refused("user:$7$101$c2FsdA==$a2V5\n", 1, "mosquitto_passwd work on a computer only")

    def test_a_broker_does_not_start_with_a_wrong_file(self):
        for content in ("user:pencil\n", None):
            path = scratch.write(content) if content else scratch.path()
            with self.assertRaises(ValueError if content else OSError):
                Broker(Limits(), Settings(password_file=path))


class TestReload(LoginCase):
    def reload(self, content):
        with open(self.path, "wb") as file:  # noqa: PTH123
            file.write(content.encode())
        users_file.reload(self.broker, self.broker.log)
        self.world.turn(2)

    def test_who_is_gone_or_has_another_password_is_disconnected(self):
        clients = [
            self.login(name, username=name, password=b"pencil")[1] for name in ("user", "other")
        ]
        self.reload(f"user:{KEYS}\nother:{OTHER}\nnew:{KEYS}\n")
        self.assertEqual([client.stream.closed for client in clients], [False, True])
        self.assertTrue("not authorized" in self.lines[-2], self.lines)
        self.reload(f"new:{KEYS}\n")
        self.assertEqual(clients[0].stream.closed, True)
        self.assertEqual(self.answer("new", username="new", password=b"pencil"), [ACCEPTED])

    def test_a_client_of_5_0_is_told_why(self):
        _, client = self.login("a", level=5, **PENCIL)
        self.reload("# nobody\n")
        self.assertEqual(client.packets(), [b"\xe0\x02\x87\0"])

    def test_the_old_password_is_not_verified_any_more(self):
        self.answer("a", **PENCIL)
        self.reload(f"user:{OTHER}\n")
        self.assertEqual(self.answer("a", **PENCIL), [BAD_LOGIN])

    def test_who_stays_is_still_verified(self):
        self.answer("a", **PENCIL)
        self.reload(f"new:{KEYS}\nuser:{KEYS}\n")
        self.assertEqual(self.open(connect("b", **PENCIL)).packets(), [ACCEPTED])

    def test_a_wrong_file_leaves_the_old_users(self):
        _, client = self.login("a", **PENCIL)
        for content in ("nonsense\n", f"user:{OTHER}\nnonsense\n"):
            self.reload(content)
            self.assertTrue("The users stay as they are" in self.lines[-1], self.lines[-1])
            self.assertTrue(self.path in self.lines[-1], self.lines[-1])
        self.assertEqual(client.stream.closed, False)
        self.assertEqual(self.open(connect("b", **PENCIL)).packets(), [ACCEPTED])

    def test_users_are_taken_whole_or_not_at_all(self):
        """Wherever memory ends: the n-th call of a function fails."""
        new = f"new:{OTHER}\nuser:{OTHER}\nlast:{KEYS}\n"
        self.answer("a", **PENCIL)  # its password is verified
        for name in ("_user", "_salts", "_differs", "_usual", "hmac", "set"):
            for call in range(1, 9):
                before = self.state()
                if not self.fails(name, call, new):
                    break
                self.assertEqual(self.state(), before)
                self.assertEqual(self.lines[-1], "The users stay as they are: no memory.")
            self.assertTrue(call > 1 or name == "hmac", name)
            self.assertEqual(sorted(self.users.slot_of), [b"last", b"new", b"user"])
            self.reload(FILE)
        self.reload(new)
        self.assertEqual(self.answer("b", **PENCIL), [BAD_LOGIN])
        self.assertEqual(self.answer("c", username="last", password=b"pencil"), [ACCEPTED])

    def test_from_the_first_change_on_nothing_is_allocated(self):
        _, client = self.login("a", level=5, **PENCIL)
        inner = users_file._put

        def locks(users, slot, row, nothing):
            users_file._put = inner
            heap_lock()
            inner(users, slot, row, nothing)

        users_file._put = locks
        try:
            with open(self.path, "wb") as file:  # noqa: PTH123
                file.write(f"user:{OTHER}\nlast:{KEYS}\n".encode())
            users_file.reload(self.broker, self.broker.log)
        finally:
            heap_unlock()
            users_file._put = inner
        self.world.turn(2)
        self.assertEqual(client.packets(), [b"\xe0\x02\x87\0"])
        self.assertEqual(sorted(self.users.slot_of), [b"last", b"user"])

    def state(self):
        users = self.users
        columns = bytes(users.keys), bytes(users.salt_bytes), list(users.iterations)
        return columns, dict(users.slot_of), dict(users.foreign), users.salts, users.usual

    def fails(self, name, call, content):
        """Reload as the program does; -> was the function called so often?"""
        inner = getattr(users_file, name, None) or getattr(builtins, name)
        left = [call]

        def counted(*args):
            left[0] -= 1
            if not left[0]:
                raise MemoryError("no memory")
            return inner(*args)

        setattr(users_file, name, counted)
        with open(self.path, "wb") as file:  # noqa: PTH123
            file.write(content.encode())
        try:
            users_file.reload(self.broker, self.broker.log)
        except MemoryError as error:
            self.lines.append(f"The users stay as they are: {error}.")
        finally:
            setattr(users_file, name, inner)
        return left[0] <= 0

    def test_anonymous_clients_stay_as_long_as_they_may(self):
        self.start(allow_anonymous=True)
        own = self.broker.client("own")
        _, client = self.login("a")
        self.reload("# nobody\n")
        self.assertEqual(client.stream.closed, False)
        self.broker.settings.allow_anonymous = False
        self.reload("# nobody\n")
        self.assertEqual((client.stream.closed, own.is_connected), (True, True))
        own.disconnect()
        self.world.turn(2)

    def test_a_reload_while_a_password_is_computed(self):
        """It begins again, with the new keys."""
        client = self.open(connect("a", **PENCIL))
        self.reload(f"user:{OTHER}\n")
        self.settle()
        self.assertEqual(client.packets(), [BAD_LOGIN])
        self.reload(f"other:{KEYS}\n")
        client = self.open(connect("a", **PENCIL))
        self.reload(FILE)
        self.settle()
        self.assertEqual(client.packets(), [ACCEPTED])

    def test_a_wrong_password_may_be_right_after_a_reload(self):
        self.reload(f"user:{OTHER}\n")
        self.assertEqual(self.answer("a", **PENCIL), [BAD_LOGIN])
        self.reload(FILE)
        self.assertEqual(self.answer("a", **PENCIL), [ACCEPTED])

    def test_an_exchange_of_scram_goes_on_only_if_its_keys_are_the_same(self):
        for content in (f"user:{OTHER}\n", "# nobody\n", f"new:{KEYS}\nuser:{KEYS}\n"):
            for again in (False, True):
                with self.subTest(content=content, again=again):
                    self.start()
                    code = self.over_a_reload(content, again)
                    self.assertEqual(code, 0 if content.startswith("new") else 0x87)

    def over_a_reload(self, content, again):
        """The code that ends an exchange with a reload within. again: of a client that is in."""
        client = self.open(scram_client.connect("a"))
        if again:
            self.prove(client)
            client.send(scram_client.auth(scram_client.first(), scram_client.AGAIN))
            self.world.turn(3)
        said = scram_client.answer(client.packets()[-1])
        self.reload(content)
        client.send(scram_client.auth(scram_client.final(b"user", said)))
        self.world.turn(3)
        packet = client.packets()[-1]
        return packet[3] if packet[0] == 0x20 else packet[2]

    def prove(self, client):
        said = scram_client.answer(client.packets()[0])
        client.send(scram_client.auth(scram_client.final(b"user", said)))
        self.world.turn(3)
        self.assertEqual(client.packets()[0][3], 0)

    def test_who_has_logged_in_by_scram_is_disconnected_like_others(self):
        client = self.open(scram_client.connect("a"))
        self.prove(client)
        self.reload(f"user:{KEYS}\n")
        self.assertEqual(client.stream.closed, False)
        self.reload(f"user:{OTHER}\n")
        self.assertEqual(client.packets(), [b"\xe0\x02\x87\0"])

    def test_a_slot_of_a_user_that_is_gone_is_used_again(self):
        self.reload("".join([f"n{number}:{KEYS}\n" for number in range(self.users.slots)]))
        self.assertEqual(sorted(self.users.slot_of.values()), list(range(self.users.slots)))
        self.reload("".join([f"m{number}:{KEYS}\n" for number in range(self.users.slots)]))
        self.assertEqual(sorted(self.users.slot_of.values()), list(range(self.users.slots)))
        self.assertEqual(self.answer("a", username="m9", password=b"pencil"), [ACCEPTED])
