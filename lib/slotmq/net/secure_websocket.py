# secure_websocket.py - MQTT over WebSocket over TLS: each packet is a frame, and a record
# (platform/tls_packets.py). Loaded on demand; owns nothing. Frames allocate nothing on
# MicroPython; on CPython all records of a write leave at once.
from slotmq.net.websocket import WebSocket
from slotmq.platform.runtime import MICROPYTHON

_FRAME_MOST = 0xFFFF  # bytes of MQTT in a frame


class SecureWebSocket(WebSocket):
    def write(self, buf, off, n):
        if self.is_busy:
            return self._write_busy(buf, off, n)
        packets = self.packets
        at = off
        n += off
        MICROPYTHON or self.stream.cork(True)
        while at < n and not self.is_busy:
            left = packets.left
            place = packets.place
            size = packets.cut(buf, at, min(n, at + _FRAME_MOST)) - at
            if MICROPYTHON:
                done = WebSocket.write(self, buf, at, size)
            else:
                done = WebSocket.send(self, memoryview(buf)[at : at + size])
            at += done
            if done < size:
                packets.left = left
                packets.place = place
                packets.cut(buf, at - done, at)
                break
        MICROPYTHON or self.stream.cork(False)
        return at - off

    def send(self, data):
        return self.write(data, 0, len(data))
