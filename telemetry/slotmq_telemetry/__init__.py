"""`slotmq telemetry`: makes tables of recordings: bundles -> bronze -> silver -> gold -> report.

commands
    command.py         all
reading
    decode.py          the decoder: segments to Arrow batches
    manifest.py        the bundles of a harvest folder, divided into tasks (harvest/segments.py
                       parses what they have)
    harvest_source.py  Spark source `slotmq`: a harvest folder
tables
    folder.py          a folder here or in an object store
    lake.py            the folder of Delta tables: files, transactions, locks
    optimize.py        fewer files, and old ones deleted
    schemas.py, columns.py  every table and column, and the end of telemetry/reference.md
    engine.py          runs tasks, in this process or in Spark's
    bronze.py          bronze and quarantine
    build.py           which boards have something new; makes silver and gold of them
    silver.py          messages, events, anchors and losses of one board
    payloads.py        what a payload is: number, JSON, CBOR, text, bytes; numbers in JSON
    gold.py, gold_health.py      figures of one board
    names.py           boards.toml
    report.py, report_tables.py, report_charts.py  the HTML page
clocks and losses of one board
    clock.py           wall time of records from anchors; which of these are believed
    corrections.py     clocks.toml
    losses.py          missing records and their reasons
live
    live.py            harvests again and again, and makes tables of what has come
Spark
    session.py, cluster.py, submit.py   session, executors, spark-submit
    simulations.py     `slotmq sim --spark`
harvest/               `slotmq harvest`
season/                recordings of simulated boards, for the demo and tests
"""
