# serve_micropython.py BOARD HOST PORT [CONF] - the broker as `slotmq run` starts it, in the
# board's heap. For each byte on standard input it prints the used and free bytes, and "done".
import gc
import sys

from slotmq import app


def answer(stream):
    if stream.read(1):
        gc.collect()
        print("state used", gc.mem_alloc())
        print("state free", gc.mem_free())
        print("done")


def ready(broker):
    broker.loop.watch(sys.stdin.buffer, answer)
    print("done")


board, host, port = sys.argv[1:4]
argv = ["--board", board, "--host", host, "-p", port]
if len(sys.argv) > 4:
    argv += ["-c", sys.argv[4]]
sys.exit(app.main(argv, on_ready=ready))
