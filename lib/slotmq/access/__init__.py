# access: who may do what: the users that own sessions, and the rules of acl_file.
