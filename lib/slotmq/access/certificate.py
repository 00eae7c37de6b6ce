# certificate.py - use_identity_as_username and use_subject_as_username: the user of a client is
# the one that its certificate names. Loaded on demand, where a listener has one of them; owns
# nothing. Control plane: allocates.
from slotmq.platform.runtime import const

_SUBJECT = const(2)


def check(broker, conn, fields):
    """Set fields.user in place of the CONNECT's user name. False: the certificate names none."""
    conns = broker.conns
    name = conns.stream[conn].user(conns.option(conn, "certificate", 0) == _SUBJECT)
    fields.user = name.encode() or None
    if not name:
        fields.why = b"no name in its certificate"
    return bool(name)
