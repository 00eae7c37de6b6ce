"""Programs from Debian's mirror, unpacked in the cache; needs neither root nor installed packages."""
