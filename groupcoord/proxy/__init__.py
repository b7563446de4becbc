"""A proxy between clients and a real cluster: passes bytes on, says what they mean, and applies rules of faults to them."""
