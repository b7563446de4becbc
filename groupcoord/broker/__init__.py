"""What a group needs around it: topics, partition logs, producer state. Pure."""
