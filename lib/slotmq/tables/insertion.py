# insertion.py - adds nodes and subscriptions to the subscription tree, and finds them by filter.
# tables/subscriptions.py owns the tree, matches topics and removes. A file of its own, since it is
# loaded on demand, with SUBSCRIBE. Owns nothing. Does not allocate.
from slotmq.constants import NONE
from slotmq.fast import level_end


def find_node(subs, buf, off, n):
    """The node of a whole filter, or NONE."""
    node = subs.root
    end = off + n
    while off <= end and node != NONE:
        stop = level_end(buf, off, end)
        node = subs.nodes.find(node, buf, off, stop - off)
        off = stop + 1
    return node


def add_node(subs, buf, off, n):
    """The node of a filter; missing nodes are added. NONE if there is no space."""
    nodes = subs.nodes
    parent = subs.root
    end = off + n
    while off <= end:
        stop = level_end(buf, off, end)
        node = nodes.find(parent, buf, off, stop - off)
        if node == NONE:
            node = nodes.add(parent, buf, off, stop - off)
            if node == NONE:
                subs.nodes_refused += 1
                subs.prune(parent)
                return NONE
            _link(subs, parent, node, buf[off] if stop == off + 1 else 0)
        parent = node
        off = stop + 1
    subs.nodes_high = max(subs.nodes_high, nodes.count())
    return parent


def _link(subs, parent, node, wildcard):
    subs.children[node] = 0
    subs.first_sub[node] = subs.plus[node] = subs.hash[node] = NONE
    subs.children[parent] += 1
    if wildcard == 43:
        subs.plus[parent] = node
    elif wildcard == 35:
        subs.hash[parent] = node


def find(subs, session, node, share=NONE):
    """The session's subscription at a node, in the group `share`; or NONE."""
    sub = subs.first_sub[node]
    shares = subs.share
    while sub != NONE:
        if subs.session[sub] == session and (shares is None or shares[sub] == share):
            break
        sub = subs.next_in_node[sub]
    return sub


def add(subs, sessions, session, node, qos, share=NONE):
    """Subscribe, or replace the subscription [3.8.4-3]; NONE if the table is full."""
    subs.forget_routes()
    sub = find(subs, session, node, share)
    if sub == NONE:
        if not subs.journal_full or sessions.clean[session]:
            sub = _take(subs, sessions, session, node)
        if sub == NONE:
            subs.refused += 1
            subs.prune(node)
            return NONE
        if subs.share is not None:
            subs.share[sub] = share
    subs.qos[sub] = qos
    subs.touch(sub)
    return sub


def _take(subs, sessions, session, node):
    # Takes a free slot and links it to its node and its session.
    sub = subs.free
    if sub != NONE:
        subs.free = subs.next_in_node[sub]
        subs.session[sub] = session
        subs.node[sub] = node
        subs.next_in_node[sub] = subs.first_sub[node]
        subs.first_sub[node] = sub
        subs.next_in_session[sub] = sessions.first_sub[session]
        sessions.first_sub[session] = sub
        subs.count += 1
        subs.high = max(subs.high, subs.count)
    return sub
