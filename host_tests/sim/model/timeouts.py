# timeouts.py - when may, and when must, the broker close a connection because of time:
# keep-alive, a packet that was begun and not finished, a reassembly buffer that others wait for.
from slotmq_tools.sim.machine import IN

from . import tables

_NEVER = -99999
_PACKET_MS = 10000  # for a packet, from its first byte to its last
_PACKET_WAITED_FOR_MS = 2000  # the same while another connection waits for a reassembly buffer
_WAITED_MS = 1500  # that count for a connection that had waited for a buffer


class Timeouts:
    def __init__(self, model):
        self.model = model
        self.world = model.world
        self.buffer_refusals = 0
        self.buffer_wanted_ms = _NEVER  # when a connection waited for a reassembly buffer last
        self.buffer_unwanted_ms = 0  # when none did

    def may_have_expired(self, link):
        """Is there a reason of time for the end of this connection?"""
        now = self.model.now()
        world = self.world
        keep_alive = link.client.plan.keep_alive * 1500
        if now - link.buffer_waited_ms < world.slack_ms:
            return True
        if keep_alive and now - link.partial_ms + world.early_ms >= keep_alive:
            return True
        if not link.ends:
            return False  # no packet is incomplete
        self.note_buffer_waiters()
        begun = now - link.packet_begun_ms + world.early_ms
        if now - self.buffer_wanted_ms < world.slack_ms:
            return begun >= _PACKET_WAITED_FOR_MS
        had_waited = link.buffer_waited_ms + world.slack_ms >= link.input_paused_ms
        paused = now - link.input_paused_ms + (_WAITED_MS if had_waited else 0) + world.early_ms
        return min(begun, paused) >= _PACKET_MS

    def note_buffer_waiters(self):
        """Does a connection wait for a reassembly buffer, or did one in this turn?"""
        reassembly = self.model.broker.conns.reassembly
        waits = self._is_waited_for()
        if waits or reassembly[2] != self.buffer_refusals:
            self.buffer_wanted_ms = self.model.now()
        self.buffer_refusals = reassembly[2]
        if not waits:
            self.buffer_unwanted_ms = self.model.now()

    def _is_waited_for(self):
        conns = self.model.broker.conns
        if conns.reassembly[3]:
            return False
        return any(conns.waits_for_reassembly(conn) for conn in range(conns.top))

    def check_buffer_holders(self):
        """A silent connection loses its reassembly buffer if others wait for one."""
        now = self.model.now()
        for link in self.world.links:
            conn = tables.connection(self.world, link)
            if conn == tables.NONE or not self.model.broker.conns.has_reassembly(conn):
                link.without_buffer_ms = now
                continue
            since = max(self.buffer_unwanted_ms, link.without_buffer_ms)
            since = max(since, link.last_activity_ms, link.wrote_ms)
            if now > since + _PACKET_WAITED_FOR_MS + 100 + self.world.slack_ms:
                self.model.fail("link %d has a buffer for which others wait", link.number)

    def check_keep_alive(self, link):
        """A silent connection is closed. The time in which the broker did not read is not
        counted."""
        loop = self.world.loop
        conns = self.model.broker.conns
        paused = loop.paused[link.conn] & IN
        if paused and link.was_paused and loop.next_tick != link.paused_tick:
            link.input_paused_ms = self.model.now()  # and a tick of the broker has noted it
        link.was_paused, link.paused_tick = paused, loop.next_tick
        if not conns.reassembly[3] and conns.waits_for_reassembly(link.conn):
            link.buffer_waited_ms = self.model.now()
            return
        timeout = link.client.plan.keep_alive * 1500
        last = max(link.last_activity_ms, link.wrote_ms, link.buffer_waited_ms)
        if timeout and self.model.now() > last + timeout + 2 * self.world.slack_ms + 10000:
            self.model.fail("link %d is silent and was not closed", link.number)
