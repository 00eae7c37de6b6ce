# tables: the fixed columns that hold all state: connections, sessions, subscriptions, messages,
# deliveries, retained messages.
