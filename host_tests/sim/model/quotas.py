# quotas.py - no session uses more than its quota of message slots, message bytes and deliveries,
# nor do the sessions of absent clients together (max_session_share, max_offline_share).
from . import tables


class Quotas:
    def __init__(self, model):
        self.model = model
        self.settings = model.settings
        self.limits = model.limits
        for session in model.sessions:
            session.slots_at_disconnect = session.deliveries_at_disconnect = None
        # Was this message slot ever retained since it was allocated? Such a slot is in no
        # quota, even after another message has been retained. After a restart it
        # is not known which were, so none of the slots of then counts.
        self.was_retained = bytearray(b"\1" * model.broker.messages.slots)
        self._follow(model.broker.retained)

    def _follow(self, retained):
        put = retained.put
        was_retained = self.was_retained

        def note(slot, msg):
            if msg != tables.NONE:
                was_retained[msg] = 1
            return put(slot, msg)

        retained.put = note

    def check(self):
        self._check_messages()
        self._check_deliveries()

    def _check_messages(self):
        """A session may always use one message. The quota of absent clients counts what came
        after they disconnected, and all of a session that used much by then."""
        model = self.model
        share = self.settings.max_session_share
        offline = {}
        refs = model.broker.messages.refs
        for msg in range(len(refs)):
            self.was_retained[msg] &= refs[msg] > 0
        for session in model.sessions:
            used = tables.message_slots(model.broker, session.name)
            replaced = self._may_have_replaced(session, len(used))
            used = {msg: used[msg] for msg in used if not self.was_retained[msg]}
            if len(used) > 1 and self._exceeds(used, share):
                model.fail("%s uses more than %d percent: %r", session.name, share, used)
            if session.link or session.slots_at_disconnect is None:
                much = self._exceeds_even_share(used)
                session.slots_at_disconnect = set() if much else set(used)
            elif replaced:
                session.slots_at_disconnect |= set(used)
            before = session.slots_at_disconnect
            offline.update({msg: used[msg] for msg in used if msg not in before})
        if self._exceeds(offline, self.settings.max_offline_share):
            model.fail("sessions that use much, or are offline, use %r", offline)

    def _check_deliveries(self):
        """The same for deliveries. Their number suffices: whatever is dropped or acknowledged
        lowers it."""
        model = self.model
        slots = model.broker.deliveries.slots
        left = (100 - self.settings.max_offline_share) * slots
        offline = 0
        for session in model.sessions:
            used = tables.delivery_count(model.broker, session.name)
            if used > 1 and used * 100 > slots * self.settings.max_session_share:
                model.fail("%s uses %d of %d deliveries", session.name, used, slots)
            if session.link or session.deliveries_at_disconnect is None:
                much = used > 1 and used * 100 * self.limits.sessions > left
                session.deliveries_at_disconnect = 0 if much else used
            offline += max(0, used - session.deliveries_at_disconnect)
        if offline * 100 > slots * self.settings.max_offline_share:
            model.fail("sessions that use much, or are offline, use %d deliveries", offline)

    def _may_have_replaced(self, session, count):
        """With drop_oldest a new message may have taken the place of a retained one."""
        before, session.slots_before = session.slots_before, count
        return count <= before and self._drops_oldest()

    def _drops_oldest(self):
        return self.settings.when_full["deliveries"] == "drop_oldest"

    def _exceeds_even_share(self, used):
        """Is this more than an even share of what max_offline_share leaves? Not asked with
        drop_oldest: there a new message replaces an old one that others may still need."""
        if self._drops_oldest() or len(used) < 2:
            return False
        left = 100 - self.settings.max_offline_share
        blocks = self.model.broker.messages.arena.blocks * left
        both = (len(used), self.limits.messages * left), (sum(used.values()), blocks)
        return any(n * 100 * self.limits.sessions > most for n, most in both)

    def _exceeds(self, used, share):
        blocks = self.model.broker.messages.arena.blocks
        slots = len(used) * 100 > self.limits.messages * share
        return slots or sum(used.values()) * 100 > blocks * share
