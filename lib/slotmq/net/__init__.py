# net: the event loop: listeners, reading and writing, timers, the end of a connection.
