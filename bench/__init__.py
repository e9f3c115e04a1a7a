"""The benchmark: a log server's figures, measured through its public interfaces only."""
