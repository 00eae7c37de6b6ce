"""Fetches programs from Debian's mirror into the cache, without root.

debian.py            unpacks packages and their dependencies
debian_archives.py   archives with fixed hashes, if the mirror's index cannot be used
retry.py             retries downloads
"""
