# slotmq_run: what a board needs around the broker. starts.py begins and counts, boot.py runs
# it, links.py is the network with wifi.py or wired.py, watch.py watchdog and LED, wall.py the
# time of day with dns.py. What a board's network.json does not ask for is not loaded.
