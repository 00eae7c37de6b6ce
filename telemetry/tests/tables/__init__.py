"""Decoder, bronze, Delta tables, report and the errors of the commands, without Spark's tasks."""
