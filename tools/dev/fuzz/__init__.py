"""Any bytes whatever: what a broker is sent by clients that know no MQTT, or half of it.

inputs.py makes them from a seed (properties.py what MQTT 5.0 adds), feeding.py sends
them on connections of their own and watches that nobody else notices, __main__.py is the
campaign of any length. The test suite sends ten thousand of them.
"""

# The configuration of a broker for it: tables that fill up in a batch or two, so
# that their policies are met as well, and no line of log for every connection.
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
