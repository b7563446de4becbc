"""What the pure parts share: calls, effects, events, timers, and Java's string hash. No I/O, no clock, no chance."""
