# certificate.py - use_identity_as_username and use_subject_as_username: the user of a client is
# the one that its certificate names. Loaded on demand, where a listener has one of them; owns
# nothing. Control plane: allocates.
from slotmq.constants import SUBJECT
from slotmq.fast import utf8_ok
from slotmq.platform import ondemand


def check(broker, conn, fields):
    """Set fields.user in place of the CONNECT's user name. False: the certificate names none."""
    conns = broker.conns
    name = conns.stream[conn].user(conns.option(conn, "certificate", 0) == SUBJECT)
    if name is None or isinstance(name, bytes):
        name = ondemand.take("platform.x509", broker.now).common_name(name)
    fields.user = user = name.encode()
    if user and utf8_ok(user, 0, len(user), 0):  # as a user name of CONNECT [3.1.3-11]
        return True
    fields.user = None
    fields.why = b"no name in its certificate"
    return False
