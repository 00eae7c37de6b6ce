"""The deterministic simulator: the real broker in a simulated world that one seed decides.

    python -m host_tests.sim --seeds 1000              # a campaign
    python -m host_tests.sim --first 17 --seeds 1      # seed 17 again

The real Loop and Broker run on simulated streams, poller, listener, clock and flash, which are in
tools/sim. Everything the broker does is compared with a model of plain dicts and lists. The same
files run on CPython and on MicroPython, and a seed has the same trace on both.

What drives what:

    __main__ > campaign > run > world > clients/behaviour > clients/client   what clients send
                                 |
                                 +----> the broker's loop (one turn)
                                 |        |  reads and writes through clients/link
                                 |        |  commits through persistence/observed_medium
                                 |        v
                                 +----> model/model    after each read: what the packets mean
                                 +----> model/output   each packet that the broker wrote
                                 +----> persistence    power cuts, restarts, comparing tables

In which order to read:

    1. plan.py, messages.py       what a seed decides; messages, payloads and topics
    2. world.py                   one turn; what a window is; reboots
    3. clients/                   client.py and sender.py: both halves of a client's session;
                                  behaviour.py: what it does next; link.py: its connection
    4. model/session.py, delivery.py   the state of the model
       model/model.py, packets.py, routing.py     how each packet changes that state
       model/output.py, output_content.py         is this packet of the broker expected?
    5. model/observations.py, quotas.py, timeouts.py, queue_check.py   what only the tables show
       model/retained.py, shared_subscriptions.py          two kinds of uncertain deliveries
       model/tables.py                                     reads the broker's tables
    6. persistence/storage.py     the medium of the journal and its power; observed_medium.py
       persistence/snapshot.py, recovery.py    the model at a commit; the tables after a restart
       persistence/littlefs.py    MicroPython's own littlefs as the medium
    7. convergence.py             after the faults: everything arrives, and nothing is left
    8. bridges/               two brokers with a bridge, which have a model of their own
    9. campaign.py, event_counts.py, coverage_check.py    many seeds; was every case reached?
       test_planted.py            faults in copies of lib that the simulator must find

The state of the model is in Model (model/model.py), its `sessions` (model/session.py), their
deliveries (model/delivery.py), and Model.retained (model/retained.py). A Link (clients/link.py)
has what is expected on its connection.
"""
