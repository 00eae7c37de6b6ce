"""Two brokers in one simulated world, one with a bridge to the other.

    python -m host_tests.sim --runtime bridge --seeds 1000

    plan.py     what a seed decides
    world.py    steps, faults of the link between the brokers, what must have arrived at the end
    end.py      one of the two brokers: its loop, its journal and power, its clients
    pipe.py     the connection between the brokers: slow, cut, half open
    table.py    the sender's table of QoS 1 and 2, as the bytes between the brokers show it

The model needs no tables of the brokers: what each client has published is a row per topic and
QoS, and what arrives anywhere is at each moment the beginning of that row.
"""
