# slotmq_run: what a board needs around the broker. starts.py begins and counts, boot.py runs
# it, links.py is the network with station.py, access.py or wired.py, watch.py watchdog and LED,
# wall.py the time of day with dns.py, beside.py an application of the board's own, safe.py what
# a board does that cannot run the broker.
# What a board has no use for is not loaded.
