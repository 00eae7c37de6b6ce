# alias_space.py - which connection gives up its topic aliases when the arena has no space for one
# more. Loaded on demand. Owns nothing. Does not allocate.


def largest(aliases, conn, n):
    """The connection whose aliases take most blocks; those of `conn` are counted with n bytes
    more."""
    size = aliases.arena.size
    found = conn
    most = _blocks(aliases, conn) + (n + size - 1) // size
    for other in range(len(aliases.offered)):
        blocks = _blocks(aliases, other)
        if blocks > most:
            most = blocks
            found = other
    return found


def _blocks(aliases, conn):
    size = aliases.arena.size
    blocks = 0
    for at in range(conn * aliases.most, (conn + 1) * aliases.most):
        blocks += (aliases.inward_len[at] + size - 1) // size
    return blocks
