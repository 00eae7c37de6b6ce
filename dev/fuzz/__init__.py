"""Fuzzing: malformed and random bytes for the broker.

inputs.py makes them from a seed (frames.py those of WebSocket),
feeding.py sends each on its own connection and checks that no other client is affected, link.py is
a connection, canary.py measures how long others wait meanwhile, __main__.py runs a campaign of any
length. The test suite sends ten thousand inputs.
"""

# The broker's configuration: small tables, so that their policies are tested, too, and no log line
# for each connection.
TIGHT = """\
limit connections 40
limit sessions 64
limit subscriptions 500
limit nodes 500
limit name_bytes 65536
limit client_id_bytes 64
limit retained 100
limit retained_name_bytes 16384
limit messages 2000
limit message_bytes 2097152
limit deliveries 500
limit queued 16
limit inflight 16
limit max_packet 65536
limit topic_bytes 4000
limit tx_bytes 2048
limit rx_bytes 2048
limit routes 64
limit reassembly 4
limit shares 20
limit aliases 4
when_full sessions drop_oldest
packet_timeout 2
log_type none
"""
