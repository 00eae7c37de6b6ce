"""The deterministic simulator: the real broker in a world that one seed decides.

    python -m host_tests.sim --seeds 1000
    python -m host_tests.sim --first 17 --seeds 1      # that seed again

The real Loop and Broker run over simulated streams, poller, listener and clock (machine.py,
link.py). Clients behave as real ones (client.py); what may be seen of the broker is compared
with a model of plain dicts and lists (model.py, session.py, watch.py). The same files run on
CPython and on MicroPython, and a seed has the same trace on both.

    numbers   random numbers          plan     what a seed decides
    encode    packets of clients      decode   packets of the broker
    messages  payloads, topics        trace    the hash of all that was sent
    machine   clock, poller, door     link     a TCP connection, and its faults
    client    both halves of a client session  what a session is owed
    model     what must hold          watch    what the broker writes, against the model
    queues    what was dropped        retained the retained messages
    peek      the broker's tables     world    all of it together, turn by turn
    ending    calm after the faults   run      a seed from its beginning to its end
    flash     a block device that loses its power
"""
