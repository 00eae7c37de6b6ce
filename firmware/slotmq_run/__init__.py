# slotmq_run: what a board needs around the broker. boot.py begins, links.py is the network,
# watch.py watchdog and LED, wall.py the time of day.
