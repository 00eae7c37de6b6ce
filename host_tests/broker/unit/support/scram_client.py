# scram_client.py - what a client says by SCRAM-SHA-256 that has the password "pencil", with the
# salt of RFC 7677, 3; alone and in packets of MQTT 5.0. It runs on both runtimes.
import binascii
import hashlib

import packets
import packets5

CLIENT_KEY = binascii.a2b_base64(b"pg/JI9Z+hkSpLRa5btpe9GVrDHJcSEN0viVTVXaZbos=")
CLIENT_NONCE = b"rOprNGfwEbeRWgbNEkqO"
METHOD = b"\x15" + packets.text("SCRAM-SHA-256")
CONTINUE, AGAIN = 0x18, 0x19


def first(name=b"user"):
    return b"n,,n=" + name + b",r=" + CLIENT_NONCE


def final(name, answer, start=None, key=CLIENT_KEY):
    """What a client with the key answers, and it signs any start."""
    start = start or b"c=biws," + answer.split(b",")[0]
    signed = b"n=" + name + b",r=" + CLIENT_NONCE + b"," + answer + b"," + start
    block = hashlib.sha256(key).digest() + bytes(32)
    for pad in (0x36, 0x5C):
        signed = hashlib.sha256(bytes([byte ^ pad for byte in block]) + signed).digest()
    proof = bytes([key[at] ^ signed[at] for at in range(32)])
    return start + b",p=" + binascii.b2a_base64(proof)[:-1]


def connect(client_id, name=b"user"):
    return packets5.connect(client_id, METHOD + b"\x16" + packets.text(first(name)))


def auth(data, code=CONTINUE):
    properties = METHOD + b"\x16" + packets.text(data)
    return packets.packet(0xF0, bytes((code,)) + packets.section(properties))


def answer(packet):
    """The data of an AUTH."""
    assert packet[0] == 0xF0, packet
    return packet.partition(b"SCRAM-SHA-256\x16")[2][2:]
