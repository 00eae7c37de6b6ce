"""Tests of the tables, in one session of Spark (`make nightly`); slow/ is apart."""
