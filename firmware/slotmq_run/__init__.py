# slotmq_run - the program around the broker on a board. Only modules that are used are loaded.
#
#   boot_counter.py   the first module: counts starts, and decides between boot.py and safe.py
#   boot.py           runs network, watchdog, LED, clock and broker
#   safe.py           safe mode: a board that cannot run the broker reports why
#   network_link.py   the network, with station.py, access.py (both Wi-Fi: wifi.py) or wired.py
#   wall_clock.py     the time of day
#   watch.py          watchdog and LED
#   application.py    the user's application, app.py
