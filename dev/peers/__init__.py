"""Other programs that tests, benchmarks and the emulator run: mosquitto, Node.js, valgrind.

Each module finds one on the machine, or fetches it into the cache, and returns the start of a
command line.
"""
