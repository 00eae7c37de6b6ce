"""Recordings of boards made into tables: segments, harvest folders, Spark, reports."""
