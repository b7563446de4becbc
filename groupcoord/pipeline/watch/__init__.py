"""Tables that follow the log: what ``run`` makes of all of it at once, made of what came, batch by batch."""
