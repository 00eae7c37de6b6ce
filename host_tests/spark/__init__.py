"""Tests of the tables, in one session of Spark: `make test` runs them by a call of its own,
and `make test-telemetry` what lies in slow/.
"""
