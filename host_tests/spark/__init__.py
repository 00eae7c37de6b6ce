"""Tests of the tables, in one session of Spark (`make test-telemetry`); slow/ is apart."""
