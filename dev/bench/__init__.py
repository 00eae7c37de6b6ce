"""Benchmarks: slotmq, other brokers and two relays take turns on the same workloads.

    workloads     all workloads by name          interleave    runs one on all brokers in turns
    brokers       starts and ends the brokers    meter         what a round costs the broker
    results       figures, medians, ratios       targets       largest allowed figures
    tables        figures as tables              report        prints and writes the tables

    client        a connection                   numbered      numbered messages, and their check
    pipeline      publishers and subscribers     pipelined     workloads that use them
    churn, idle, nonmatching, retained, roundtrip: the other workloads

`instructions` counts instructions instead of measuring time; `sleeper` stops the broker for it.
The folder `servers` has the scripts that start other brokers and the relays. A relay writes what
it reads and parses nothing: its cost is a lower bound.
"""
