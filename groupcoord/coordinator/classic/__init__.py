"""Classic groups: members elect a leader, the leader assigns (JoinGroup, SyncGroup, Heartbeat, LeaveGroup)."""
