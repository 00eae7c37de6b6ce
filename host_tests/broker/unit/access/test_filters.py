"""SUBSCRIBE's two questions about filters, for all filters and topics of three levels of a, b."""

import unittest

from slotmq.access.filters import common, covers
from slotmq.fast import topic_matches


def texts(levels, depth):
    """All texts of 1 to `depth` of these levels."""
    found = found_last = list(levels)
    for _ in range(depth - 1):
        found_last = [before + "/" + level for before in found_last for level in levels]
        found = found + found_last
    return found


def filters():
    plain = texts(("a", "b", "+"), 3)
    return ["#"] + plain + [name + "/#" for name in plain if name.count("/") < 2]


class TestFilters(unittest.TestCase):
    def setUp(self):
        # Topics of a level more than any filter, and of a level that no filter has
        topics = [topic.encode() for topic in texts(("a", "b", "c"), 4)]
        self.matched = {}
        for name in filters():
            text = name.encode()
            self.matched[name] = {
                topic
                for topic in topics
                if topic_matches(text, 0, len(text), topic, 0, len(topic))
            }

    def test_common_is_the_intersection(self):
        for one, topics in self.matched.items():
            for other, others in self.matched.items():
                found = common(one.encode().split(b"/"), other.encode().split(b"/"))
                both = self.matched[b"/".join(found).decode()] if found else set()
                self.assertEqual(both, topics & others, (one, other))

    def test_covers_is_a_subset(self):
        for one, topics in self.matched.items():
            for other, others in self.matched.items():
                found = covers(one.encode().split(b"/"), other.encode().split(b"/"))
                self.assertEqual(bool(found), others <= topics, (one, other))
