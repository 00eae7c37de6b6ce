"""A broker in tests: the class `Mqtt`, and a plugin of pytest with fixtures that make one.

plugin.py    fixtures, the mark `mqtt`, options, reports; imports the others when a fixture is used
options.py   what a test's broker shall be: the arguments of the mark
mqtt.py      Mqtt: look inside, make things go wrong
server.py    the broker in a thread of this process, its start, its end and its power cuts
process.py   the broker in a process on MicroPython
spy.py       sees the packets: messages, the last packets, what is to be dropped or refused
seen.py      messages and packets, and waits for more
network.py   the listening socket and connections, which fail when they are told to
tls.py       the same over TLS, and its throw-away certificate
texts.py     filters, and what a failed assertion says
"""
