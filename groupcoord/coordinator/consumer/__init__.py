"""Consumer groups of KIP-848: the coordinator assigns, and every member is reconciled by its own heartbeats."""
