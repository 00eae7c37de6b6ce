# access: who may come in; loaded where a file of users is configured.
