# tables_micropython.py - creates each table of a broker and prints the heap that it needs. It is a
# separate module, so that its names are not in the heap when the packed code is measured.
import gc

from slotmq import broker
from slotmq.platform import ondemand

_BORROWED = ("fast.columns", "control")  # loaded while a broker is created


def used():
    ondemand.forget_all()
    gc.collect()
    return gc.mem_alloc()


def print_table(name, make):
    # The smaller of two, if both fit: the collector may take other bytes for pointers, and keep
    # garbage.
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


def print_tables(limits):
    sessions = print_table("Sessions", lambda: broker.Sessions(limits, False))
    subs = print_table("Subscriptions", lambda: broker.Subscriptions(limits, False))
    print_table("Connections", lambda: broker.Connections(limits, subs.pool, sessions.conn))
    messages = print_table("Messages", lambda: broker.Messages(limits))
    window = print_table("Deliveries", lambda: broker.Deliveries(limits)).window
    print_table("Retained", lambda: broker.Retained(limits, messages, window))
    sessions = subs = messages = window = None
    settings = broker.Settings()
    settings.sys_interval = 0  # else $SYS would be loaded here
    for name in _BORROWED:
        ondemand.take(name, 0)  # its interned names stay
    print_table("Broker", lambda: broker.Broker(limits, settings))
    settings.mqtt_versions = 3
    print_table("Broker-3", lambda: broker.Broker(limits, settings))
