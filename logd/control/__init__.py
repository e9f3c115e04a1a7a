"""Who there is, what is theirs, who may do what: users, organisations, projects and keys."""
