# tables_micropython.py - makes each table of a broker, as it was written, and says what it
# takes of the heap. A module of its own, so that its names take nothing of a board's heap
# where the packed program is measured.
import gc

from slotmq import broker
from slotmq.platform import ondemand

_FOR_A_MOMENT = ("fast.columns", "control")  # loaded while a broker is made


def used():
    ondemand.forget_all()
    gc.collect()
    return gc.mem_alloc()


def tell_table(name, make):
    # Of two where there is room for them: what the collector takes for a pointer may keep
    # something else beside one.
    before = used()
    table = make()
    size = used() - before
    if gc.mem_free() > 3 * size:
        before = used()
        another = make()
        size = min(size, used() - before)
        del another
    print("table", name, size)
    return table


def tell_tables(limits):
    sessions = tell_table("Sessions", lambda: broker.Sessions(limits, False))
    subs = tell_table("Subscriptions", lambda: broker.Subscriptions(limits, False))
    tell_table("Connections", lambda: broker.Connections(limits, subs.pool, sessions.conn))
    messages = tell_table("Messages", lambda: broker.Messages(limits))
    window = tell_table("Deliveries", lambda: broker.Deliveries(limits)).window
    tell_table("Retained", lambda: broker.Retained(limits, messages, window))
    sessions = subs = messages = window = None
    settings = broker.Settings()
    settings.sys_interval = 0  # else this is where it is loaded
    for name in _FOR_A_MOMENT:
        ondemand.take(name, 0)  # what stays of it are names
    tell_table("Broker", lambda: broker.Broker(limits, settings))
    settings.mqtt_versions = 3
    tell_table("Broker-3", lambda: broker.Broker(limits, settings))
