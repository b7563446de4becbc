"""Consumer groups (KIP-848), in which the coordinator assigns, and each member reconciles by its own heartbeats."""
