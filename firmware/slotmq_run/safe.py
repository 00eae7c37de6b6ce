# safe.py - safe mode: no broker, until its pause is over. The board comes onto its network and
# says on the broker's port why, to whoever connects: to a browser, to nc, to `slotmq status`.
#
# Loaded only then, and without the broker's code, which may be what is broken. The watchdog runs,
# since a driver that hangs may be what has ended the starts. Allocates.
import gc
import json
import socket
import time

from slotmq_run import starts, watch

_PAUSE_S = 120
_LONGEST_S = 3600
_DOUBLED = 5  # times, until it is the longest
_PORT = 1883
_ROUND_S = 0.1
_PATIENCE_S = 1  # for what a client says first; with that unread its answer would be lost
_ANSWER = """HTTP/1.0 503 Safe mode\r
Content-Type: text/plain\r
Retry-After: %d\r
\r
slotmq: safe mode: %s; next start in %d s\r
"""


def died(count, why, bitten):
    """The reason of a safe mode: what ended the last start, in its words if it has told."""
    silent = "the watchdog or a reset" if bitten else "a power cut, a reset or a crash"
    text = "%d starts ended within a minute, the last one by %s"
    return text % (count, why or silent)


def run(folder, why, marks):
    """Is the board to start again now? No: Ctrl-C, the REPL has it. `marks`: of slotmq.boots."""
    stays = marks.count("-")
    hangs = "!" if "!" in marks else ""
    marks = hangs + "-" * min(stays + 1, _DOUBLED)
    pause = min(_PAUSE_S << stays, _LONGEST_S)
    starts.write(folder, marks + "?")
    try:
        try:
            stay(folder, why, pause, not hangs)
        except Exception as error:  # a pause all the same
            print("slotmq: safe mode: %r" % error)
            time.sleep(pause)
    except KeyboardInterrupt:
        return False
    finally:
        starts.write(folder, marks)
    return True


def stay(folder, why, pause, networked):
    """Until the pause is over, or Ctrl-C."""
    gc.collect()
    config = _config(folder)
    # A Pico W's LED is its Wi-Fi chip's.
    led = watch.Led(config.get("led", "LED") if networked else None)
    led.show(watch.ALARM)
    dog = watch.Dog(8000)  # whatever network.json says, which may be what is wrong
    print("slotmq: next start in %d s; Ctrl-C: the REPL" % pause)
    link = door = None
    rounds = past = 0
    began = time.time()
    dog.start()
    try:
        if networked:
            link = _link(config)
        while past < pause:
            dog.feed()
            rounds += 1
            led.step(rounds * 100)
            if link:
                if link.step(past * 1000):
                    print(link.told())
                door = door or _listener(folder)
            if door:
                _answer(door, _ANSWER % (pause - past, why, pause - past))
            time.sleep(_ROUND_S)
            past = int(time.time() - began)
    finally:
        dog.release()
        led.show(watch.OFF)
        if door:
            door.close()


def _config(folder):
    try:
        with open(folder + "network.json") as file:
            return dict(json.load(file))
    except Exception:  # this may be what is broken, and a line has told of it
        return {}


def _link(config):
    try:
        from slotmq_run import links

        link = links.made[0] if links.made else links.make(config)
        link.start(0)
        return link
    except Exception as error:
        print("slotmq: no network: %r" % error)


def _listener(folder):
    # On the first listener of slotmq.conf; its address may be what is wrong
    host, port = "0.0.0.0", _PORT
    try:
        with open(folder + "slotmq.conf") as file:
            for line in file:
                words = line.split()
                if words[:1] in (["listener"], ["port"]):
                    port, host = int(words[1]), (words[2:] or [host])[0]
                    break
    except (OSError, ValueError, IndexError):
        pass
    return _opened(host, port) or _opened("0.0.0.0", port)


def _opened(host, port):
    door = None
    try:
        door = socket.socket()
        door.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        door.bind(socket.getaddrinfo(host, port)[0][-1])
        door.listen(1)
        door.setblocking(False)
        return door
    except Exception:  # the next round tries again
        if door:
            door.close()


def _answer(door, text):
    # All who have come are told, one after the other.
    try:
        client = door.accept()[0]
    except OSError:
        return
    try:
        client.settimeout(_PATIENCE_S)
        try:
            client.recv(512)
        except OSError:
            pass  # it says nothing
        client.send(text.encode())
    except OSError:
        pass  # it has gone
    finally:
        client.close()
