"""Benchmarks: the broker, its peers and two ceilings, interleaved on the same workloads.

`client` connects, `numbered` makes bursts of
numbered messages and checks what arrives, `pipeline` keeps many connections
busy at once. A workload (`pipelined`, `retained`, `churn`, `roundtrip`, `idle`,
`nonmatching`) opens connections to a broker (`brokers`) and runs a round on
them; `meter` says what a round cost the broker's process. `workloads` names
them all, `contest` interleaves them, `targets` is what the figures are held
against, `report` shows them. `instructions` counts instead of timing. The folder
`servers` has the scripts that peers and ceilings are started by.
"""
