# starts.py - a board's start: it is counted before anything else is loaded, and who has died
# three times has a pause.
#
# Owns slotmq.boots: a "+" for each start that has not lived for a minute, behind a "-" for each
# safe mode before them, and what ended the last start, if it could tell. The start after three
# is safe mode (safe.py): no broker, a fast LED, and a line on the network that says why, for two
# minutes, then four, eight, up to an hour; then it starts anew. So is, at once, what a new start
# may not mend: a configuration that cannot be used (Safe), or a file of the code that is missing.
# A "?" is there while safe mode runs. If the watchdog ends that, its network is what hangs: "!",
# and the next safe mode has none.
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
_TOLD = 160  # characters of what ended a start


class Safe(Exception):
    """No new start would mend this, unless somebody does meanwhile."""


def run(folder="", turns=0):
    """Run the board until Ctrl-C; the broker's exit status. `turns`: no more of them."""
    marks, _, why = _read(folder).partition(" ")
    marks = marks.replace("?", "!" if _bitten() else "")
    try:
        if marks.count("+") >= _DEAD:
            from slotmq_run import safe

            raise Safe(safe.died(_DEAD, why, _bitten()))
        write(folder, marks + "+")
        status = _load().run(folder, turns)
        forget(folder)  # it ended in order, however young it was
        return status
    except Safe as error:
        why = str(error)
    except KeyboardInterrupt:  # while it was loaded
        forget(folder)
        raise
    except Exception as error:
        _restart(folder, error)
        raise  # a computer has somebody who sees it
    return _safe(folder, why, marks)


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
    except ImportError as error:
        getattr(sys, "print_exception", print)(error)
        raise Safe("%s: `slotmq deploy` mends it" % error)
    finally:
        dog.release()  # who starts with a long journal feeds nobody


def _boot():
    if "app.py" in os.listdir():
        from slotmq_run import beside

        beside.prepare()
    from slotmq_run import boot

    return boot


def _read(folder):
    try:
        with open(folder + _BOOTS) as file:
            return file.read()
    except (OSError, ValueError):  # it is not there, or no text
        return ""


def write(folder, text):
    """Let this be in slotmq.boots."""
    try:
        with open(folder + _BOOTS, "w") as file:
            file.write(text)
    except OSError:
        pass  # a full flash is no reason not to start


def _bitten():
    # An RP2040 says so of machine.reset() as well.
    return hasattr(machine, "reset_cause") and machine.reset_cause() == machine.WDT_RESET


def _restart(folder, error):
    # Tell of what ended the broker, and start the board again; a computer goes on.
    if hasattr(machine, "reset"):
        marks = _read(folder)
        if marks:  # it was young
            write(folder, marks + " " + repr(error)[:_TOLD])
        getattr(sys, "print_exception", print)(error)
        time.sleep(0.5)  # until it has been told
        machine.reset()


def _safe(folder, why, marks):
    # A pause, and a new start; Ctrl-C leaves the board to the REPL.
    print("slotmq: safe mode:", why, file=sys.stderr)
    if not hasattr(machine, "reset"):
        forget(folder)
        return 1
    from slotmq_run import safe

    if safe.run(folder, why, marks):
        machine.reset()
    return 1
