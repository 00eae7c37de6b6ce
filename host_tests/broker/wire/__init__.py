"""The broker as its clients see it: bytes in, bytes out, over real sockets."""
