# closed.py - which listeners let nobody in, as warnings for the log. Loaded at the end of a start;
# owns nothing; allocates.


def warnings(settings, listeners):
    """A warning for each listener at which nobody could come in: (hosts, port, _, options)."""
    found = []
    for hosts, port, _, own in listeners:
        has_users = settings.password_file and own.get("password_file", 1)
        if not has_users and not own.get("allow_anonymous", settings.allow_anonymous):
            found.append(
                "Nobody may come in at %s:%d, unless a hook accepts: there are no users. Add"
                " `password_file FILE`, which `slotmq passwd FILE NAME` makes, or"
                " `allow_anonymous true` to let in everybody." % (hosts[0], port)
            )
    return found
