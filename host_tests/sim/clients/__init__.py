"""Simulated clients and their connections."""
