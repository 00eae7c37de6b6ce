"""Tests of the recordings' way into tables."""
