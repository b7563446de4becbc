"""The numbered gotchas of the reference that no story can show over the wire with a single broker, and why."""

COUNT = 60
EXCUSED = {
    12: "needs a coordinator that reloads its partition: a restart, which the replay tests have and stories have not",
    43: "needs a coordinator that is loading a partition while it is asked",
    57: "needs a coordinator that is loading a partition while it is asked",
}
