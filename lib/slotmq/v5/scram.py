# scram.py - SCRAM-SHA-256, for the enhanced authentication of MQTT 5.0 [4.12; RFC 5802, 7677].
#
# Owns the exchanges under way, by `who` (the connection); the users are those of access/users.py.
# If `most` are under way, another one is refused as "server busy" and counted in
# `refused`; the broker's `most` is its number of connections.
#     exchanges  who -> (name, StoredKey, ServerKey, how the final message has to begin,
#                what is signed before it); at most 2 KB each
# Names are what SASLprep does not change. An unknown name gets the same
# exchange and the same refusal as a wrong password. v5/scram_steps.py, loaded on demand, reads the
# messages. Allocates: called at CONNECT and AUTH only.
import binascii
import os

from slotmq.constants import UNAUTHORIZED
from slotmq.platform import ondemand

_DATA_MAX = 512  # bytes of a client's message
_BAD_AUTHENTICATION_METHOD = 0x8C


class Scram:
    def __init__(self, users, most=16):
        self.user = None  # the name that the last auth() accepted
        self.last = None  # the name that it was asked about
        self.why = None  # why it refused, for the log
        self.most = most
        self.refused = 0
        self.users = users
        self.exchanges = {}

    def nonce(self):
        return binascii.b2a_base64(os.urandom(18))[:-1]

    def auth(self, who, method, data):
        """A client's message -> (reason code, answer or None); any code but 0x18 is the end."""
        self.user = self.last = self.why = None
        exchange = self.exchanges.pop(who, None)
        if method != b"SCRAM-SHA-256":
            return _BAD_AUTHENTICATION_METHOD, None
        if data and len(data) <= _DATA_MAX:
            steps = ondemand.take("v5.scram_steps", 0)
            try:
                if exchange:
                    return steps.final(self, data, *exchange)
                return steps.first(self, who, data)
            except ValueError:
                pass
        return UNAUTHORIZED, None

    def forget(self, who):
        """The connection has ended."""
        self.exchanges.pop(who, None)
