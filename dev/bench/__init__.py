"""Benchmarks: slotmq and other brokers take turns on the same workloads.

    workloads     all workloads by name          brokers       starts and ends the brokers
    results       medians, ratios, targets       page          tables of them in documents
    meter         CPU and sleep of a process     tls           with TLS, with passwords

    client        a connection                   numbered      numbered messages, and their check
    pipeline      publishers and subscribers     pipelined     workloads that use them
    churn, retained, waiting: the other workloads

`instructions` counts instructions instead of measuring time.
"""
