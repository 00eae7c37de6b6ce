"""The deterministic simulator: the real broker in a world that one seed decides.

    python -m host_tests.sim --seeds 1000
    python -m host_tests.sim --first 17 --seeds 1      # that seed again

The real Loop and Broker run over simulated streams, poller, listener and clock, which are
in tools/sim, with random numbers, flash, and a codec that shares nothing with the broker.
Clients behave as real ones (client.py); what may be seen of the broker is compared with a
model of plain dicts and lists (model.py, session.py, output.py). The same files run on
CPython and on MicroPython, and a seed has the same trace on both.

    plan      what a seed decides     messages payloads, topics
    link      a connection, and what the model knows of it
    sender, client   both halves of a client's session; behaviour.py is what it does with them
    model     sessions                session  what one session is owed
    learning  what tables tell        content  a PUBLISH and its message
    handling  packets                 owing    who is owed a message
    queues    what was dropped        retained the retained messages
    watch     what is written         peek     the broker's tables
    world     all of it, by turns     ending   calm after the faults
    keeper    the journal's medium, and the power     littlefs  a real one, on MicroPython
    snapshot  what was known at a commit              survival  the tables after a reboot
    run       a seed as a whole       runner   the program that both runtimes run
    campaign  many seeds (CPython)    planted  faults in copies of lib, from faults.py and
    seen      what a campaign has met          faults_journal.py
"""
