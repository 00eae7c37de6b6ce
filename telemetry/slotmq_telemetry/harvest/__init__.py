"""`slotmq harvest`: fetches recordings from boards into a folder of bundles.

the command
    command.py   options and output
    collect.py   the steps of a harvest for each source: find what is new, fetch, verify, bundle
    compact.py   --compact: small bundles into large ones
sources
    network.py   --broker: a board's ring over MQTT (heads, ranges of segments, the time)
    plan.py      what to fetch from a ring: headers, and which segments may still grow
    usb.py       --port: a board's ring over its serial line
    copies.py    --from: segment files that were copied by hand
the folder
    manifest.py  MANIFEST.sqlite, the list of bundles, and the folder's lock
    store.py     a segment on its way into a bundle: pieces, partial/, bundles/
    damage.py    bundles that are missing or changed on this disk
    segments.py  the bytes of a segment: header, and how many records are intact
"""
