"""Tests of the tables, in one session of Spark (`make test-spark`); slow/ is apart."""
