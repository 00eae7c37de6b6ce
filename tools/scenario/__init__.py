"""`slotmq sim`: the real broker with a network of clients that a file describes.

Loop, Broker and journal are those that run on a board; clock, streams, poller and flash are
simulated (tools/sim). So an hour takes seconds, and the same seed always gives the same result.
If the power fails, a new broker is restored from the journal.

    command         options of `slotmq sim`        run             what it does
    model           the scenario's tables and keys  read            reads and checks the file
    units           times and sizes                 broker_config   Limits and Settings
    network         clock and events                wire            a TCP connection over a link
    device          a client                        queue           its outgoing messages
    traffic         schedules what happens          idle            turns that can be skipped
    tracker         all messages                    message_state   what the broker did with one
    usage           peaks of tables, first limit    refusal         refused by which setting
    wear            the journal's flash             outcome         the result as numbers
    report          the result as text              picture         the result as PNG or HTML
    batch           many seeds and limits (on a cluster: slotmq_telemetry.simulations)
    batch_command   `slotmq sim --spark`
"""
