# boot_counter.py - counts the board's starts before anything else is loaded. After three starts
# that failed within a minute each, the board goes to safe mode.
#
# Owns the file slotmq.boots, which is removed when a start has lasted a minute. It contains
#
#   +   for each start since the last safe mode
#   -   for each safe mode, up to five
#   ?   while safe mode runs
#   !   if the watchdog ended safe mode: its network hangs, so the next one has no network
#
# and after a space the exception that ended the last start, if it was one.
#
# In safe mode (safe.py) no broker runs, the LED blinks fast, and the board reports the reason on
# the network, for 2 minutes, then 4, 8, up to an hour. Then it starts again. A start leads to safe
# mode at once if another one would not help: the configuration is unusable (Safe), or code is
# missing.
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
_LONGEST = 160  # characters of the exception that are stored


class Safe(Exception):
    """The reason for safe mode: another start would fail in the same way."""


def run(folder="", turns=0):
    """Run until Ctrl-C; -> the broker's exit status. `turns`: end after so many turns."""
    marks, _, why = _read(folder).partition(" ")
    marks = marks.replace("?", "!" if _bitten() else "")
    try:
        if marks.count("+") >= _DEAD:
            from slotmq_run import safe

            raise Safe(safe.died(_DEAD, why, _bitten()))
        write(folder, marks + "+")
        status = _load().run(folder, turns)
        forget(folder)  # an orderly end is no failure, even within the first minute
        return status
    except Safe as error:
        why = str(error)
    except KeyboardInterrupt:  # during the imports
        forget(folder)
        raise
    except Exception as error:
        _restart(folder, error)
        raise  # on a computer, which _restart() does not reset
    return _safe(folder, why, marks)


def forget(folder):
    """Forget all failed starts."""
    try:
        os.remove(folder + _BOOTS)
    except OSError:
        pass  # there is none


def _load():
    # Import the rest only after the start was counted, since any of it may fail. The watchdog
    # runs, since MicroPython may hang on a truncated .mpy file.
    from slotmq_run.watch import Dog

    dog = Dog(_LOAD_MS)
    dog.start()
    try:
        return _boot()
    except ImportError as error:
        getattr(sys, "print_exception", print)(error)
        raise Safe("%s: `slotmq deploy` mends it" % error)
    finally:
        dog.release()  # reading a long journal takes longer than its timeout


def _boot():
    if "app.py" in os.listdir():
        from slotmq_run import application

        application.prepare()
    from slotmq_run import boot

    return boot


def _read(folder):
    try:
        with open(folder + _BOOTS) as file:
            return file.read()
    except (OSError, ValueError):  # it does not exist, or is no text
        return ""


def write(folder, text):
    """Write slotmq.boots."""
    try:
        with open(folder + _BOOTS, "w") as file:
            file.write(text)
    except OSError:
        pass  # a full flash does not prevent a start


def _bitten():
    # Did the watchdog reset the board? An RP2040 says so after machine.reset(), too.
    return hasattr(machine, "reset_cause") and machine.reset_cause() == machine.WDT_RESET


def _restart(folder, error):
    # Store and print the exception, and reset the board. On a computer, do nothing.
    if hasattr(machine, "reset"):
        marks = _read(folder)
        if marks:  # it ended within the first minute
            write(folder, marks + " " + repr(error)[:_LONGEST])
        getattr(sys, "print_exception", print)(error)
        time.sleep(0.5)  # until the text has been sent
        machine.reset()


def _safe(folder, why, marks):
    # Run safe mode, then reset; after Ctrl-C return to the REPL.
    print("slotmq: safe mode:", why, file=sys.stderr)
    if not hasattr(machine, "reset"):
        forget(folder)
        return 1
    from slotmq_run import safe

    if safe.run(folder, why, marks):
        machine.reset()
    return 1
