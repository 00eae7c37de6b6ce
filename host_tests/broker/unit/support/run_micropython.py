# run_micropython.py - runs test files on MicroPython: run_micropython.py test_x.py ...
#
# Test files and their helpers are imported by their plain names, as under pytest: from the test
# file's folder, and from this one. MICROPYPATH leads to slotmq and to host_tests/support/shims,
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
        folder, _, name = file.rpartition("/")
        if folder not in sys.path:
            sys.path.insert(1, folder)
        name = name.rsplit(".", 1)[0]
        before = result.passed + result.failed
        result.run_module(__import__(name))
        if result.passed + result.failed == before:
            print("FAIL", name, "has no tests")
            result.failed += 1
    return result.finish()


sys.exit(main(sys.argv[1:]))
