/** What the coordinator will do by itself, if nothing comes: derived from what members said and when. */
import type { Group, Member, State } from "./state.ts";

interface Deadline {
  group: string;
  /** The member whose deadline it is; "" if it is the group's. */
  member: string;
  kind: "session" | "join" | "sync" | "revoke";
  /** From when to when (ms on the clock of the server). */
  sinceMs: number;
  dueMs: number;
  /** The entry from which it counts. */
  seq: number;
}

/** Those that are pending in `state`, the earliest first. */
export function deadlines(state: State): Deadline[] {
  const found: Deadline[] = [];
  for (const group of state.groups.values()) found.push(...ofGroup(group, state));
  return found.sort((one, other) => one.dueMs - other.dueMs);
}

function ofGroup(group: Group, state: State): Deadline[] {
  const found: Deadline[] = [];
  const wait = group.wait;
  if (wait && group.members.size > 0) found.push({ group: group.name, member: "", kind: wait.kind, sinceMs: wait.sinceMs, dueMs: wait.sinceMs + wait.forMs, seq: wait.seq });
  for (const member of group.members.values()) {
    const forMs = sessionMs(member, state);
    if (forMs !== null && !member.waits)
      found.push({ group: group.name, member: member.id, kind: "session", sinceMs: member.heardMs, dueMs: member.heardMs + forMs, seq: member.heardSeq });
    if (member.revoking.length && member.rebalanceMs !== null)
      found.push({
        group: group.name, member: member.id, kind: "revoke", seq: member.heardSeq,
        sinceMs: member.revokingSinceMs, dueMs: member.revokingSinceMs + member.rebalanceMs,
      });
  }
  return found;
}

/** A member of a group of KIP-848 is told its session's timeout by the group's configuration. */
function sessionMs(member: Member, state: State): number | null {
  if (member.protocol === "classic") return member.sessionMs;
  return state.settings.group_consumer_session_timeout_ms ?? null;
}

export const WHAT: Record<Deadline["kind"], string> = {
  session: "is taken out unless it is heard of",
  join: "the group goes on without those that have not joined again",
  sync: "members that have not sent SyncGroup are taken out",
  revoke: "is taken out unless it gives its partitions back",
};
