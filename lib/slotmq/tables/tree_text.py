# tree_text.py - prints the subscription tree as text, for Broker.dump_tree(). Loaded only then;
# owns nothing; allocates.
from slotmq.constants import NONE


def lines(subs, sessions):
    """A line for each node, indented two spaces more than its parent, with its subscribers.

    $SYS is always among them, although its topics are not stored."""
    below = {}
    for node in range(subs.root):
        if subs.children[node] or subs.first_sub[node] != NONE:
            below.setdefault(subs.nodes.scope[node], []).append(node)
    if subs.nodes.find(subs.root, b"$SYS", 0, 4) == NONE:
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
    while sub != NONE:
        who.append("%s:%d" % (_shown(sessions.client_id(subs.session[sub])), subs.qos[sub]))
        sub = subs.next_in_node[sub]
    return " (" + ", ".join(who) + ")" if who else ""


def _shown(text):
    return repr(text.decode())[1:-1]  # escapes line ends and a terminal's control characters


def dump(broker):
    """Print the lines, and write them to log files."""
    for line in lines(broker.subscriptions, broker.sessions):
        print(line)
        if broker.log:
            broker.log(0, line)
