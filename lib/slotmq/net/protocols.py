# protocols.py - what a listener with settings of its own speaks. Loaded on demand for each, so
# that other files need not have these texts, which MicroPython keeps. Owns nothing; allocates.


def handle(loop, accept, own):
    """accept() of such a listener; own: its settings by name."""
    if own.get("protocol") == "websockets":
        from slotmq.net import websocket

        return websocket.acceptor(loop, accept, own)
    return accept
