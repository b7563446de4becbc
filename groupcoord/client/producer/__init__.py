"""The producer without I/O: accumulator, sender, sequence numbers, transactions. The simulation drives it on simulated time."""
