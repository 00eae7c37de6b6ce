"""$SYS/broker/heap/current is the heap in use without garbage."""

import time

from slotmq_dev.heap.process import SERVE, Process
from slotmq_tools import boards
from slotmq_tools.deploy import mqtt_client

BOARD = "RPI_PICO_W"
LOADED = 12000  # bytes, at most, of modules that a CONNECT and a SUBSCRIBE load
CLIENTS = 60


def test_garbage_is_not_counted() -> None:
    heap = boards.load(BOARD).heap_kb * 1024
    with Process(SERVE, BOARD, heap) as process:
        process.rows()
        for _ in range(CLIENTS):
            process.connect().close()
        time.sleep(2)  # modules that were loaded on demand are dropped
        found = mqtt_client.system_topics(process.address, mqtt_client.Login(), 0.5)
        time.sleep(2)
        used = {name: size for _, name, size in process.ask()}["used"]
    assert abs(int(found["$SYS/broker/heap/current"]) - used) < LOADED
    assert abs(int(found["$SYS/broker/heap/size"]) - heap) < heap // 20
