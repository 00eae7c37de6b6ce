# acl_vectors.py - rules, and what they say: for each acl_file lines of client id, user name ("-":
# none), topic, and what the client may do with it: r it is delivered to it, w it may publish it.
# test_rules.py asks the rules, interop/test_acl_vectors.py mosquitto's own broker.
#
# OURS are the cases in which we are stricter than mosquitto 2.0: a rule that is written without $
# matches no topic with $, whatever the name in its place is (as in mosquitto 2.1).

FILES = (
    (
        """\
topic read news/#
topic readwrite chat/+
topic deny chat/private
topic open
user alice
topic write in/alice
topic read out/alice
topic deny room/+/safe
topic room/#
user bob
# again alice, later in the file
user alice
topic read more
""",
        """\
c1 - news/a r
c1 - news r
c1 - newsa
c1 - chat/1 rw
c1 - chat/private
c1 - chat/1/2
c1 - open rw
c1 - room/1
c1 alice news/a
c1 alice in/alice w
c1 alice out/alice r
c1 alice room/1 rw
c1 alice room rw
c1 alice room/1/safe
c1 alice room/1/safe/x rw
c1 alice more r
c1 bob more
c1 bob news/a
c1 eve news/a
""",
    ),
    (
        """\
pattern readwrite dev/%c/#
pattern read to/%u
pattern deny dev/+/closed
pattern write log/%u/%c
user carol
topic deny dev/c1/x
topic read dev/c1/closed
""",
        """\
c1 - dev/c1/a rw
c1 - dev/c1/closed
c1 - dev/c2/a
c1 - to/
c1 alice to/alice r
c1 alice to/bob
c1 alice log/alice/c1 w
c1 alice log/c1/alice
c1 carol dev/c1/x
c1 carol dev/c1/y rw
c1 carol dev/c1/closed r
a/b alice dev/a/b/x rw
a/b alice dev/a/x
c1 x/y to/x/y r
c1 x/y to/x
c1 a+ to/a+
""",
    ),
    (
        """\
topic readwrite +/one
topic readwrite $own/#
topic deny #
user root
topic #
""",
        """\
c1 - a/one
c1 - $own/a rw
c1 root a/one rw
c1 root a rw
c1 root a/b/c/d rw
c1 root $own/a
""",
    ),
)
OURS = (
    ("pattern readwrite %c/#\npattern readwrite %u\n", "$own alice $own/a\nc1 $own $own\n"),
    # The names are patterns themselves: they match nothing.
    ("pattern readwrite dev/%c/#\n", "+ alice dev/c1/a\n# alice dev/a\na#b alice dev/a#b/x\n"),
)


def cases(lines):
    """(client id, user name or None, topic, "r", "w", "rw" or "")"""
    for line in lines.split("\n")[:-1]:
        words = line.split(" ")
        user = None if words[1] == "-" else words[1]
        yield words[0], user, words[2], words[3] if len(words) > 3 else ""
