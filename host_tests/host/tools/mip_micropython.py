# mip_micropython.py PORT - runs the broker that mip has installed, with a Pico W's limits.py.
import gc
import sys

from limits import LIMITS

from slotmq import Broker

broker = Broker(LIMITS)
print(broker.listen("127.0.0.1", int(sys.argv[1])))
gc.collect()
print(gc.mem_free())
broker.run()
