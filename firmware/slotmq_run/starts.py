# starts.py - a board's start: it is counted before anything else is loaded, and who has died
# three times is left alone.
#
# Owns slotmq.boots, which counts starts that have not lived for a minute. The start after
# three of those is safe mode: no broker, no watchdog, a fast LED and the REPL. So is, at once,
# what no new start would mend: a configuration that cannot be used (Safe), or a file of the
# code that is missing. The next start tries again.
import json
import os
import sys
import time

try:
    import machine
except ImportError:
    machine = None  # type: ignore[assignment]

_BOOTS = "slotmq.boots"
_DEAD = 3
_LOAD_MS = 8000


class Safe(Exception):
    """No new start would mend this."""


def run(folder="", turns=0):
    """Run the board until Ctrl-C; the broker's exit status. `turns`: no more of them."""
    count = _count(folder)
    if count >= _DEAD:
        return _safe(folder, "%d starts ended within a minute" % count)
    try:
        status = _load().run(folder, turns)
        forget(folder)  # it ended in order, however young it was
    except Safe as error:
        return _safe(folder, error)
    except ImportError as error:
        return _safe(folder, "%s: `slotmq deploy` mends it" % error)
    except KeyboardInterrupt:  # while it was loaded
        forget(folder)
        raise
    except Exception as error:
        _restart(error)
        raise  # a computer has somebody who sees it
    return status


def forget(folder):
    """This start has lived long enough."""
    try:
        os.remove(folder + _BOOTS)
    except OSError:
        pass  # it was not there


def _load():
    # Late, so that whatever is wrong with it is a start that was counted; MicroPython may hang
    # on a file that was cut off.
    from slotmq_run.watch import Dog

    dog = Dog(_LOAD_MS)
    dog.start()
    try:
        return _boot()
    finally:
        dog.release()  # who starts with a long journal feeds nobody


def _boot():
    from slotmq_run import boot

    return boot


def _count(folder):
    # starts before this one that did not live for a minute
    try:
        with open(folder + _BOOTS) as file:
            count = len(file.read())
    except OSError:
        count = 0
    try:
        with open(folder + _BOOTS, "w") as file:
            file.write("+" * (count + 1))
    except OSError:
        pass  # a full flash is no reason not to start
    return count


def _restart(error):
    # Tell of what ended the broker, and start the board again; a computer goes on.
    if hasattr(machine, "reset"):
        getattr(sys, "print_exception", print)(error)
        time.sleep(0.5)  # until it has been told
        machine.reset()


def _safe(folder, why):
    # Nothing runs any more.
    print("slotmq: safe mode:", why, file=sys.stderr)
    forget(folder)
    try:
        from slotmq_run.watch import Led

        with open(folder + "network.json") as file:
            Led(json.load(file).get("led", "LED")).alarm()
    except Exception:  # noqa: S110 - this may be what is broken, and the line has told of it
        pass
    return 1
