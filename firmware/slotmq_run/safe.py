# safe.py - safe mode: a pause without the broker. The board joins its network and answers each
# connection to the broker's port with the reason, for a browser, nc or `slotmq status`.
#
# It does not load the broker's code, which may be what is broken. The watchdog runs, since a
# network driver that hangs may have ended the starts. Allocates.
import gc
import json
import socket
import time

from slotmq_run import boot_counter, watch

_PAUSE_S = 120
_LONGEST_S = 3600
_DOUBLED = 5  # how often the pause doubles until it is the longest
_PORT = 1883
_ROUND_S = 0.1
_REQUEST_S = 1  # to receive a request: closing a socket with unread data would lose the answer
_ANSWER = """HTTP/1.0 503 Safe mode\r
Content-Type: text/plain\r
Retry-After: %d\r
\r
slotmq: safe mode: %s; next start in %d s\r
"""


def died(count, why, bitten):
    """The reason of this safe mode. `why`: the exception that ended the last start, if stored."""
    silent = "the watchdog or a reset" if bitten else "a power cut, a reset or a crash"
    text = "%d starts ended within a minute, the last one by %s"
    return text % (count, why or silent)


def run(folder, why, marks):
    """Stay in safe mode; -> reset now? No after Ctrl-C. `marks`: the content of slotmq.boots."""
    stays = marks.count("-")
    hangs = "!" if "!" in marks else ""
    marks = hangs + "-" * min(stays + 1, _DOUBLED)
    pause = min(_PAUSE_S << stays, _LONGEST_S)
    boot_counter.write(folder, marks + "?")
    try:
        try:
            stay(folder, why, pause, not hangs)
        except Exception as error:  # the pause is needed nevertheless
            print("slotmq: safe mode: %r" % error)
            time.sleep(pause)
    except KeyboardInterrupt:
        return False
    finally:
        boot_counter.write(folder, marks)
    return True


def stay(folder, why, pause, networked):
    """Wait `pause` seconds, or until Ctrl-C. `networked`: with network and LED."""
    gc.collect()
    config = _config(folder)
    # The LED of a Pico W is connected to its Wi-Fi chip.
    led = watch.Led(config.get("led", "LED") if networked else None)
    led.show(watch.ALARM)
    dog = watch.Dog(8000)  # not that of network.json, which may be what is wrong
    print("slotmq: next start in %d s; Ctrl-C: the REPL" % pause)
    link = listener = None
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
                    print(link.state())
                listener = listener or _listener(folder)
            if listener:
                _answer(listener, _ANSWER % (pause - past, why, pause - past))
            time.sleep(_ROUND_S)
            past = int(time.time() - began)
    finally:
        dog.release()
        led.show(watch.OFF)
        if listener:
            listener.close()


def _config(folder):
    try:
        with open(folder + "network.json") as file:
            return dict(json.load(file))
    except Exception:  # the file may be what is broken; the reason says so
        return {}


def _link(config):
    try:
        from slotmq_run import network_link

        link = network_link.made[0] if network_link.made else network_link.make(config)
        link.start(0)
        return link
    except Exception as error:
        print("slotmq: no network: %r" % error)


def _listener(folder):
    # The address of the first listener in slotmq.conf, else all addresses, since it may be wrong
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
    listener = None
    try:
        listener = socket.socket()
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(socket.getaddrinfo(host, port)[0][-1])
        listener.listen(1)
        listener.setblocking(False)
        return listener
    except Exception:  # tried again in the next round
        if listener:
            listener.close()


def _answer(listener, text):
    # Answer one waiting connection, if there is one.
    try:
        client = listener.accept()[0]
    except OSError:
        return
    try:
        client.settimeout(_REQUEST_S)
        try:
            client.recv(512)
        except OSError:
            pass  # it sends no request
        client.send(text.encode())
    except OSError:
        pass  # it has disconnected
    finally:
        client.close()
