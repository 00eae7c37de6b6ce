"""$SYS/broker/heap/current is what is in use, without the garbage that waits for a collection."""

import time

from slotmq_tools import boards
from slotmq_tools.deploy import mqtt_client
from slotmq_tools.dev.heap.process import SERVE, Process

BOARD = "RPI_PICO_W"
LOADED = 12000  # bytes, at most, of what is loaded while a client comes in and subscribes
COMERS = 60


def test_garbage_is_not_counted() -> None:
    heap = boards.load(BOARD).heap_kb * 1024
    with Process(SERVE, BOARD, heap) as process:
        process.rows()
        for _ in range(COMERS):
            process.connect().close()
        time.sleep(2)  # what was loaded on demand is put away
        found = mqtt_client.system_topics(process.address, mqtt_client.Login(), 0.5)
        time.sleep(2)
        used = {name: size for _, name, size in process.ask()}["used"]
    assert abs(int(found["$SYS/broker/heap/current"]) - used) < LOADED
    assert abs(int(found["$SYS/broker/heap/size"]) - heap) < heap // 20
