# tree_text.py - the subscription tree as text, for people. Borrowed when it is asked for;
# allocates.
from slotmq.platform.runtime import const

_NONE = const(0xFFFF)


def lines(subs, sessions):
    """A line for each node, two spaces deeper than its parent, its subscribers behind it.

    $SYS is always there, beside the application's levels: its topics are made, not stored."""
    below = {}
    for node in range(subs.root):
        if subs.children[node] or subs.first_sub[node] != _NONE:
            below.setdefault(subs.nodes.scope[node], []).append(node)
    if subs.nodes.find(subs.root, b"$SYS", 0, 4) == _NONE:
        yield "$SYS"
    todo = [(node, 0) for node in reversed(below.get(subs.root, ()))]
    while todo:
        node, depth = todo.pop()
        text = bytearray(subs.nodes.length[node])
        subs.nodes.read(node, text, 0)
        yield "  " * depth + _shown(bytes(text)) + _subscribers(subs, sessions, node)
        todo.extend([(child, depth + 1) for child in reversed(below.get(node, ()))])


def _subscribers(subs, sessions, node):
    who = []
    sub = subs.first_sub[node]
    while sub != _NONE:
        who.append("%s:%d" % (_shown(sessions.client_id(subs.session[sub])), subs.qos[sub]))
        sub = subs.next_in_node[sub]
    return " (" + ", ".join(who) + ")" if who else ""


def _shown(text):
    return repr(text.decode())[1:-1]  # escaped: a line is a level, and no terminal obeys it


def dump(broker):
    """Print the lines, and log them where a log is kept in a file."""
    for line in lines(broker.subscriptions, broker.sessions):
        print(line)
        if broker.log:
            broker.log(0, line)
