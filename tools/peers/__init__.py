"""Programs of others that the tests and benchmarks run beside the broker.

Each module finds one on the machine or fetches it into the cache, and answers
with the start of a command line.
"""
