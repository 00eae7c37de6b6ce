# mip_micropython.py - an application with the broker that mip has installed: its limits are a
# Pico W's, whose file stands beside it. mip_micropython.py PORT
import gc
import sys

from limits import LIMITS

from slotmq import Broker

broker = Broker(LIMITS)
print(broker.listen("127.0.0.1", int(sys.argv[1])))
gc.collect()
print(gc.mem_free())
broker.run()
