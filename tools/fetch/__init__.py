"""Fetches programs from Debian's mirror into the cache, without root.

debian.py            unpacks packages and their dependencies
retry.py             retries downloads
"""
