# client_id.py - use_username_as_clientid and clientid_prefixes: which client id a client has, and
# whether it may have it. Loaded on demand, where one of them is set; owns nothing. Control plane:
# may allocate.
from slotmq.constants import REFUSE_USER


def handle(broker, conn, fields):
    """Set fields.client_id; 0 or a refusal."""
    settings = broker.settings
    option = broker.conns.option
    if option(conn, "use_username_as_clientid", settings.use_username_as_clientid):
        fields.client_id = name = fields.user_name
        # Of a client that has logged in by AUTH or with a certificate, that name counts, and
        # CONNECT must say the same.
        is_other = (fields.method is not None or fields.user) and fields.user != fields.read(name)
        if not name or not name[1] or is_other:
            fields.client_id = None
            fields.why = b"no user name for its client id"
            return REFUSE_USER
    client_id = fields.read(fields.client_id)
    client_id = client_id or option(conn, "auto_id_prefix", settings.auto_id_prefix)
    if not client_id.startswith(settings.clientid_prefixes):
        fields.why = b"clientid_prefixes"
        return REFUSE_USER
    return 0
