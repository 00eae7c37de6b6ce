"""Tests of the tables, in one session of Spark: `make test-spark`, which runs slow/ behind them."""
