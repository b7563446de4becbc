"""Classic groups, in which an elected leader assigns (JoinGroup, SyncGroup, Heartbeat, LeaveGroup)."""
