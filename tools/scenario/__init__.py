"""`slotmq sim`: the real broker with a network of clients that a file describes.

Loop, Broker and journal are those that run on a board; clock, streams, poller and flash are
simulated (tools/sim), so an hour takes seconds, and one seed gives one answer. The broker may
lose its power: another one goes on with what the journal has.

    kinds     values of a scenario     plan      its tables, as classes
    reading   the file, checked        broker    Limits and Settings of its broker
    network   clock, turns, events     wire      a TCP connection over a link
    device    a client                 queue     what a client has to send
    traffic   when what happens        usage    peaks of tables, which was full first
    tracker    who is due which message, and what became of it
    fate      what the broker did with one, from its tables
    wear      the journal's flash      outcome   a run, as numbers
    words     the answer as text       picture   the answer as PNG or HTML
    command   the options              answer    what carries them out
"""
