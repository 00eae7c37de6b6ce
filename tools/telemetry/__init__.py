"""`slotmq telemetry`: makes tables of recordings: bundles -> bronze -> silver -> gold -> report.

commands
    command.py         bronze, silver, gold, ingest, report, season
    more_commands.py   live, delta, pack
    demo.py            the demo
reading
    segment.py         parses one segment; standard library only
    decode.py          the decoder: segments to Arrow batches
    manifest.py        the bundles of a harvest folder, divided into tasks
    harvest_source.py  Spark source `slotmq`: a harvest folder
tables
    lake.py            the folder of tables: layout, commits, locks
    schemas.py         the columns of every table
    bronze.py, bronze_files.py   bronze and quarantine
    build.py           order of the steps of silver and gold
    silver.py          messages, events, anchors
    payloads.py        what a payload is: number, JSON, CBOR, text, bytes
    bridges.py         messages that several brokers recorded
    gold.py, gold_health.py      tables of messages; of clients and boards
    report.py, report_charts.py  the HTML page
    delta.py           copies as Delta tables
clocks and losses of one board, without Spark
    board_task.py      what Spark computes once for each board
    clock.py, bounds.py          wall time of records from anchors
    anchors.py         which anchors of a boot are trusted
    boot_order.py, chains.py     boots that contradict each other
    own_clock.py       the board's own clock
    losses.py          missing records and their reasons
live source (`slotmq_ring`)
    live.py            runs the query, writes its batches into bronze
    ring_source.py     the Spark source: the driver plans
    ring_index.py      what the driver knows of a ring
    ring_fetch.py      what an executor fetches
Spark
    session.py, cluster.py, submit.py   session, executors, spark-submit
season/                generated recordings whose truth is known, for tests and the demo
"""
