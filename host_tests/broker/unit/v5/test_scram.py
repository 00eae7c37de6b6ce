"""SCRAM-SHA-256: RFC 7677's exchange, refusals, and the bound on exchanges."""

import binascii
import unittest

import scratch
from scram_client import CLIENT_NONCE, final

from slotmq import Limits
from slotmq.access import users_file
from slotmq.access.users import Users
from slotmq.v5.scram import Scram

SCRAM = b"SCRAM-SHA-256"
CONTINUE, REFUSED, BUSY, BAD_METHOD = 0x18, 0x87, 0x89, 0x8C

# The example of RFC 7677, 3: "user" with the password "pencil"
SALT = "W22ZaJ0SNY7soEsUEjb6gQ=="
STORED = "WG5d8oPm3OtcPnkdi4Uo7BkeZkBFzpcXkuLmtbsT4qY="
SERVER = "wfPLwcE6nTWhTAmQ7tl2KeoiWGPlZqQxSrmfPwDl2dU="
KEYS = f"4096:{SALT}:{STORED}:{SERVER}"
SERVER_NONCE = b"%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0"
NONCE = CLIENT_NONCE + SERVER_NONCE
FIRST = b"n,,n=user,r=" + CLIENT_NONCE
ANSWER = b"r=" + NONCE + b",s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096"
PROOF = b",p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="
FINAL = b"c=biws,r=" + NONCE + PROOF
VERIFIER = b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="


def users_of(path):
    return Users(Limits(users=8), path)


def scram(*names, most=4):
    """Its users are "user" and `names`, all with the same keys."""
    others = "".join([f"{name}:{KEYS}\n" for name in names])
    made = Scram(users_of(scratch.write(f"# users\n\nuser:{KEYS}\n{others}")), most)
    made.nonce = lambda: SERVER_NONCE
    return made


def begin(server, name, who=1):
    return server.auth(who, SCRAM, b"n,,n=" + name + b",r=" + CLIENT_NONCE)


class TestExchange(unittest.TestCase):
    def test_the_example_of_rfc_7677(self):
        server = scram()
        self.assertEqual(server.auth(1, SCRAM, FIRST), (CONTINUE, ANSWER))
        self.assertIsNone(server.user)
        self.assertEqual(server.auth(1, SCRAM, FINAL), (0, VERIFIER))
        self.assertEqual(server.user, b"user")

    def test_again_on_the_same_connection(self):
        server = scram("other")
        self.assertEqual(
            [server.auth(1, SCRAM, each)[0] for each in (FIRST, FINAL)], [CONTINUE, 0]
        )
        _, answer = begin(server, b"other")
        self.assertIsNone(server.user)
        self.assertEqual(server.auth(1, SCRAM, final(b"other", answer))[0], 0)
        self.assertEqual(server.user, b"other")

    def test_two_connections_at_once(self):
        server = scram("other")
        answers = [begin(server, name, who)[1] for who, name in ((1, b"user"), (2, b"other"))]
        self.assertEqual(server.auth(2, SCRAM, final(b"other", answers[1]))[0], 0)
        self.assertEqual(server.user, b"other")
        self.assertEqual(server.auth(1, SCRAM, final(b"user", answers[0]))[0], 0)
        self.assertEqual(server.user, b"user")

    def test_a_client_that_could_bind_channels(self):
        server = scram()
        _, answer = server.auth(1, SCRAM, b"y" + FIRST[1:])
        self.assertEqual(server.auth(1, SCRAM, final(b"user", answer, b"c=eSws,r=" + NONCE))[0], 0)

    def test_names_with_what_separates(self):
        server = scram("a,b", "=2C", "3D")
        for sent, name in ((b"a=2Cb", b"a,b"), (b"=3D2C", b"=2C"), (b"3D", b"3D")):
            with self.subTest(name=name):
                _, answer = begin(server, sent)
                self.assertEqual(server.auth(1, SCRAM, final(sent, answer))[0], 0)
                self.assertEqual(server.user, name)

    def test_extensions_are_passed_over_and_signed(self):
        server = scram()
        _, answer = begin(server, b"user")
        message = final(b"user", answer, b"c=biws,r=" + NONCE + b",x=1")
        self.assertEqual(server.auth(1, SCRAM, message)[0], 0)
        begin(server, b"user")
        self.assertEqual(server.auth(1, SCRAM, message.replace(b"x=1", b"x=2"))[0], REFUSED)

    def test_a_nonce_is_of_its_exchange(self):
        server = Scram(users_of(scratch.write(f"user:{KEYS}")))
        nonces = set()
        for _ in range(8):
            _, answer = server.auth(1, SCRAM, FIRST)
            server.forget(1)
            nonces.add(answer.split(b",")[0][len(b"r=" + CLIENT_NONCE) :])
        self.assertEqual((len(nonces), {len(nonce) for nonce in nonces}), (8, {24}))


class TestRefused(unittest.TestCase):
    def refused(self, server, data, method=SCRAM, code=REFUSED):
        self.assertEqual(server.auth(1, method, data), (code, None))
        self.assertIsNone(server.user)
        self.assertEqual(server.exchanges, {})

    def test_other_methods(self):
        for method in (b"", b"SCRAM-SHA-1", b"SCRAM-SHA-256-PLUS", b"scram-sha-256", b"PLAIN"):
            with self.subTest(method=method):
                server = scram()
                self.refused(server, FIRST, method, BAD_METHOD)
                server.auth(1, SCRAM, FIRST)
                self.refused(server, FINAL, method, BAD_METHOD)
                self.refused(server, FINAL)

    def test_first_messages(self):
        rows = (
            None, b"", b"n", b"n,,", b"n,,n=user", b"n,,r=abc,n=user", b"user", FINAL,
            b"n,,n=,r=abc", b"n,,n=user,r=", b"n,,n=user,,r=abc", b"n,,n=user,x=1,r=abc",
            b"N,,n=user,r=abc", b"n=user,r=abc", b"n,n=user,r=abc", b"z,,n=user,r=abc",
            b"p=tls-unique,,n=user,r=abc", b"p,,n=user,r=abc", b"n,a=user,n=user,r=abc",
            b"n,,m=1,n=user,r=abc", b"n,,n=us\ter,r=abc", b"n,,n=user,r=a b",
            b"n,,n=us=er,r=abc", b"n,,n=user=,r=abc", b"n,,n=us=2cer,r=abc",
            b"n,,n=us==2Cer,r=abc", b"n,,n=us\0er,r=abc", b"n,,n=us\x7fer,r=abc",
            b"n,,n=\xc3ser,r=abc", b"n,,n=\xff,r=abc", b"n,,n=user,r=\xff",
            b"n,,n=user,r=" + b"a" * 501,
        )  # fmt: skip
        for data in rows:
            with self.subTest(data=data):
                self.refused(scram(), data)

    def test_first_messages_that_are_right(self):
        for more in (b"a" * 500, b"abc,x=1", b"!~=", b"abc,x=1,r=other"):
            with self.subTest(more=more):
                self.assertEqual(scram().auth(1, SCRAM, b"n,,n=user,r=" + more)[0], CONTINUE)

    def test_final_messages(self):
        begins = b"c=biws,r=" + NONCE
        rows = (
            None, b"", FIRST, begins, begins + b",p=", PROOF, PROOF[1:], b"," + FINAL,
            b"c=biws" + PROOF, b"r=" + NONCE + PROOF, begins + b"x" + PROOF,
            b"r=" + NONCE + b",c=biws" + PROOF, FINAL + b",x=1", FINAL + b"\n", FINAL[:-1],
            FINAL + b"=", FINAL + PROOF, begins + b",p=!" + PROOF[3:], begins + b",p=\xff",
            begins + b",p=====", begins + b",p=AAAA", begins + b",p=" + b"AAAA" * 11,
            begins + b",x=1" + PROOF, begins + b"," + b"x" * 512 + PROOF,
        )  # fmt: skip
        for data in rows:
            with self.subTest(data=data):
                server = scram()
                server.auth(1, SCRAM, FIRST)
                self.refused(server, data)
                self.refused(server, FINAL)

    def test_a_wrong_start_with_the_proof_that_fits_it(self):
        nonces = (CLIENT_NONCE, SERVER_NONCE, NONCE[:-1], NONCE + b"0", b"")
        starts = [b"c=biws,r=" + nonce for nonce in nonces]
        starts += [begin + b",r=" + NONCE for begin in (b"c=eSws", b"c=", b"c=biws,x=1", b"")]
        for start in starts:
            with self.subTest(start=start):
                server = scram()
                _, answer = server.auth(1, SCRAM, FIRST)
                self.refused(server, final(b"user", answer, start))

    def test_a_proof_that_differs_in_one_bit(self):
        proof = binascii.a2b_base64(PROOF[3:])
        for at in range(0, 256, 15):
            with self.subTest(bit=at):
                wrong = bytearray(proof)
                wrong[at // 8] ^= 1 << at % 8
                server = scram()
                server.auth(1, SCRAM, FIRST)
                encoded = binascii.b2a_base64(bytes(wrong))[:-1]
                self.refused(server, b"c=biws,r=" + NONCE + b",p=" + encoded)

    def test_the_proof_of_an_earlier_exchange(self):
        server = scram()
        server.auth(1, SCRAM, FIRST)
        server.auth(1, SCRAM, FINAL)
        self.refused(server, FINAL)
        server.nonce = lambda: b"another"
        server.auth(1, SCRAM, FIRST)
        self.refused(server, FINAL)
        server.auth(1, SCRAM, FIRST)
        self.refused(server, FINAL.replace(SERVER_NONCE, b"another"))

    def test_the_proof_of_another_user(self):
        server = scram("other")
        self.assertEqual(begin(server, b"other")[0], CONTINUE)
        self.refused(server, FINAL)

    def test_the_proof_on_another_connection(self):
        server = scram()
        self.assertEqual(server.auth(1, SCRAM, FIRST)[0], CONTINUE)
        self.assertEqual(server.auth(2, SCRAM, FINAL), (REFUSED, None))
        self.assertEqual(server.auth(1, SCRAM, FINAL)[0], 0)


class TestUnknownUser(unittest.TestCase):
    def test_it_goes_the_same_way(self):
        server = scram()
        code, answer = begin(server, b"nobody")
        nonce, salt, count = answer.split(b",")
        self.assertEqual((code, nonce, count), (CONTINUE, b"r=" + NONCE, b"i=4096"))
        self.assertEqual((salt[:2], len(salt)), (b"s=", 26))
        self.assertEqual(server.auth(1, SCRAM, final(b"nobody", answer)), (REFUSED, None))
        self.assertIsNone(server.user)

    def test_its_salt_is_the_same_each_time_and_its_own(self):
        path = scratch.write(f"user:{KEYS}\n")
        users = users_of(path)
        answers = set()
        for name in (b"nobody", b"nobody", b"noone"):
            users_file.load(users, path)  # as after a reload
            server = Scram(users)
            server.nonce = lambda: SERVER_NONCE
            answers.add(begin(server, name)[1])
        self.assertEqual(len(answers), 2)

    def test_its_salt_is_the_same_after_a_restart(self):
        """Whatever the order of the lines; else it could be told from a user by asking twice."""
        lines = [f"{name}:{KEYS}\n" for name in ("one", "two")]
        lines.append(f"three:5000:{SALT}:{SERVER}:{STORED}\n")
        answers = set()
        for content in ("".join(lines), "".join(lines), "".join(reversed(lines))):
            server = Scram(users_of(scratch.write(content)))
            server.nonce = lambda: SERVER_NONCE
            answers.add(begin(server, b"nobody")[1])
        self.assertEqual(len(answers), 1)
        server = Scram(users_of(scratch.write(lines[0])))
        server.nonce = lambda: SERVER_NONCE
        self.assertFalse(begin(server, b"nobody")[1] in answers)

    def test_who_knows_all_keys_has_no_proof_for_it(self):
        """Its salt comes from the keys of the file, its StoredKey does not."""
        server = scram()
        _, answer = begin(server, b"nobody")
        for key in (server.users.salts, server.users.field(0, 1), server.users.field(0, 2)):
            begin(server, b"nobody")
            self.assertEqual(server.auth(1, SCRAM, final(b"nobody", answer, key=key))[0], REFUSED)

    def test_its_salt_is_the_same_after_a_change_of_the_file(self):
        """A user keeps his, so a name whose salt changes would be none."""
        for before in ("# nobody\n", f"user:{KEYS}\n"):
            users = users_of(scratch.write(before))
            answers = []
            for content in (before, f"user:{KEYS}\nnew:{KEYS}\n", f"new:{KEYS}\n", before):
                users_file.load(users, scratch.write(content))
                server = Scram(users)
                server.nonce = lambda: SERVER_NONCE
                answers.append(begin(server, b"nobody")[1])
            self.assertEqual(answers, answers[:1] * 4)
        other = Scram(users_of(scratch.write("# nobody\n")))
        other.nonce = lambda: SERVER_NONCE
        first = begin(other, b"nobody")[1]
        other = Scram(users_of(scratch.write("# nobody\n")))
        other.nonce = lambda: SERVER_NONCE
        self.assertFalse(begin(other, b"nobody")[1] == first)

    def test_it_has_what_most_users_have(self):
        long = binascii.b2a_base64(bytes(32)).decode().strip()
        line = f"9999:{long}:{STORED}:{SERVER}"
        lines = (f"one:{KEYS}", f"two:{line}", f"three:{line}")
        server = Scram(users_of(scratch.write("\n".join(lines))))
        kinds = set()
        for number in range(64):
            _, salt, count = begin(server, b"nobody%d" % number)[1].split(b",")
            kinds.add((len(salt), count))
            server.forget(1)
        self.assertEqual(kinds, {(46, b"i=9999")})

    def test_a_user_of_mosquitto_passwd_has_no_keys_for_it(self):
        server = scram()
        server.users.foreign[server.users.find(b"user")] = "$7$..."
        _, answer = begin(server, b"user")
        self.assertFalse(SALT.encode() in answer)
        self.assertEqual(server.auth(1, SCRAM, final(b"user", answer)), (REFUSED, None))

    def test_a_file_without_users(self):
        server = Scram(users_of(scratch.write("# nobody yet\n")))
        _, answer = begin(server, b"user")
        self.assertEqual(answer[-7:], b",i=4096")
        self.assertEqual(server.auth(1, SCRAM, final(b"user", answer)), (REFUSED, None))


class TestBound(unittest.TestCase):
    def test_one_too_many_is_told_that_the_server_is_busy(self):
        server = scram(most=2)
        self.assertEqual([begin(server, b"user", who)[0] for who in (1, 2)], [CONTINUE] * 2)
        for who in (3, 4, 5):
            self.assertEqual(begin(server, b"user", who), (BUSY, None))
        self.assertEqual((len(server.exchanges), server.refused), (2, 3))
        self.assertEqual(server.auth(1, SCRAM, FINAL)[0], 0)
        self.assertEqual(begin(server, b"user", 3)[0], CONTINUE)

    def test_every_end_makes_room(self):
        server = scram(most=1)
        ends = {
            "success": lambda: server.auth(1, SCRAM, FINAL),
            "refused": lambda: server.auth(1, SCRAM, FIRST),
            "method": lambda: server.auth(1, b"?", FINAL),
            "forgotten": lambda: server.forget(1),
        }
        for name, end in ends.items():
            with self.subTest(end=name):
                self.assertEqual(begin(server, b"user")[0], CONTINUE)
                end()
                self.assertEqual(server.exchanges, {})

    def test_what_is_forgotten_cannot_go_on(self):
        server = scram()
        server.auth(1, SCRAM, FIRST)
        self.assertEqual([server.forget(who) for who in (2, 1, 1)], [None] * 3)
        self.assertEqual(server.auth(1, SCRAM, FINAL), (REFUSED, None))
