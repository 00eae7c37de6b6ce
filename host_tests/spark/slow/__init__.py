"""Run by `make test-spark`."""
