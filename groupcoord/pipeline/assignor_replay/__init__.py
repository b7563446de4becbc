"""The what-if replay (``--replay-with``): replays the recorded history of each group with other partition assignors."""
