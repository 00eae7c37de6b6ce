# run_micropython.py - runs test files on MicroPython: run_micropython.py test_x.py ...
#
# It stands beside the test files, so they and their helpers are imported by their
# plain names, as under pytest. MICROPYPATH leads to slotmq and to host_tests/support/shims,
# where `unittest` is. A file that cannot be imported ends the run with a traceback.
#
# The broker comes first: an import under way takes 4 KB of this port's C stack (for a
# path of PATH_MAX), and the broker's own go deep enough.
import sys
import unittest

import slotmq  # noqa: F401


def main(files):
    result = unittest.Result()
    for file in files:
        name = file.rsplit("/", 1)[-1].rsplit(".", 1)[0]
        before = result.passed + result.failed
        result.run_module(__import__(name))
        if result.passed + result.failed == before:
            print("FAIL", name, "has no tests")
            result.failed += 1
    return result.finish()


sys.exit(main(sys.argv[1:]))
