# restore.py - finds the generation of the journal that counts, and puts its rows back into the
# tables. settle() of journal/start.py then moves their times to the new clock.
#
# A generation is read twice: first to find the last COMMIT, then to collect what counts before
# it. Afterwards the journal begins a new generation, so nothing is ever written after a torn
# end. Damage is reported and set aside, and the start continues with what is whole. Two things
# end the start: limits that are too low, until they are raised; and rows that contradict one
# another, which the next start does not find. Loaded for the start only; owns nothing; allocates.
from slotmq.journal import records
from slotmq.journal.reader import DAMAGED, Reader, last_commit
from slotmq.journal.restore_rows import Restorer
from slotmq.platform import ondemand

_FORMAT = 1  # of the media


def restore(broker, medium, warn=print, *sync):
    """Put back the medium's content, and begin to write to it; -> the broker's journal. For tests
    and tools: journal/start.py does the same in steps.

    Call it before the first client. sync: the last two arguments of Journal. warn(text) reports
    what is wrong. OSError: a limit is too low for what was promised, or the medium cannot be
    written for another reason than a lack of space."""
    from slotmq.journal.start import settle

    newest, restorer = read_back(broker, medium, warn)
    if restorer:
        settle(broker, restorer)
    control = ondemand.take("journal.compaction", broker.now)
    return control.begin(broker, medium, newest, warn, *sync)


def read_back(broker, medium, warn):
    """Put back the medium's content; -> its newest generation, and the Restorer for settle(),
    None if nothing was restored."""
    # When packed, tables/insertion.py is in one file with it: both are unloaded together.
    ondemand.take("protocol.subscribe", broker.now)
    newest, restorer = 0, None
    longest = broker.limits.topic_bytes + 64
    longest = max(longest, 2 * broker.limits.client_id_bytes + 64, 4 * broker.limits.received + 8)
    generations = medium.generations()
    for generation in generations:
        newest = max(newest, generation)
        reader = Reader(medium, generation, longest)
        end, torn = last_commit(reader)
        if end:
            if torn == DAMAGED:
                kept = medium.set_aside(generation, True)
                kept = _kept_as(kept) or "; no copy of it is kept"
                warn("generation %d is damaged behind byte %d%s" % (generation, end, kept))
            elif torn:
                warn("its end was cut off: what was written last does not count")
            if generation == generations[0] and getattr(medium, "failed", False):
                kept = _kept_as(medium.set_aside(0))
                text = "what was newer has rotted%s; it goes on with generation %d"
                warn(text % (kept, generation))
            restorer = _take_over(broker, reader, end)
            if restorer.odd:
                text = "%d messages had control characters in their topics: dropped; see "
                warn(text % len(restorer.odd) + "allow_control_characters")
            break
        kept = _kept_as(medium.set_aside(generation))
        why = _newer(torn, records.VERSION) or "damaged"
        warn("generation %d is %s%s" % (generation, why, kept))
    if not generations:
        kept = medium.set_aside(0)
        if kept is not None:  # there was something
            newer = _newer(medium.is_foreign, _FORMAT)
            what = "is " + newer if newer else "cannot be read"
            if medium.is_foreign == 0:
                what = "is mosquitto's, which this broker cannot read"
            warn("what is there %s%s" % (what, _kept_as(kept)))
    return newest, restorer


def _newer(version, known):
    return "of version %d, this broker knows %d" % (version, known) if version > known else ""


def _kept_as(name):
    return "; kept as " + name if name else ""


def _take_over(broker, reader, end):
    restorer = Restorer(broker, reader)
    try:
        restorer.take_over(end)
    except (IndexError, KeyError):
        # No broker writes such rows. The next start will not find them.
        kept = _kept_as(reader.medium.set_aside(reader.generation))
        raise OSError("generation %d contradicts itself%s" % (reader.generation, kept))
    return restorer
