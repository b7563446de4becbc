"""A transactional producer without I/O. The simulation drives it on simulated time."""
