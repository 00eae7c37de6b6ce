# tables: the fixed columns that hold all state: connections, sessions, subscriptions, messages,
# deliveries, retained messages. A table knows no other one.
