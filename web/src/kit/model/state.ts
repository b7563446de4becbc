/** The state of a cluster as its trace tells it: `apply` takes one entry after the other. */
import type { Entry } from "../../data.ts";

export type Partition = string; // `orders-0`

export interface Member {
  id: string;
  instanceId: string | null;
  clientId: string;
  clientHost: string;
  protocol: "classic" | "consumer";
  /** What it offers (classic), or what it subscribes to. */
  offers: string[];
  joinedSeq: number;
  sessionMs: number | null;
  rebalanceMs: number | null;
  /** When it was heard last (ms on the clock of the server), by the requests that count. */
  heardMs: number;
  heardSeq: number;
  /** It has joined again and waits for the others: its session cannot run out. */
  waits: boolean;
  /** It has been away since its last word, as a static member may. */
  away: boolean;
  epoch: number;
  /** KIP-848: STABLE, UNREVOKED_PARTITIONS, UNRELEASED_PARTITIONS. */
  state: string;
  revoking: Partition[];
  revokingSinceMs: number;
}

interface Wait {
  kind: "join" | "sync";
  sinceMs: number;
  forMs: number;
  seq: number;
}

export interface Group {
  name: string;
  type: "classic" | "consumer" | "simple";
  state: string;
  /** The generation, or the epoch of a group of KIP-848. */
  number: number;
  /** The assignor that the vote chose, or that the coordinator uses. */
  assignor: string;
  leader: string;
  members: Map<string, Member>;
  /** Ids that were given and not used yet: since when (ms), for how long. */
  pending: Map<string, { sinceMs: number; forMs: number | null; seq: number }>;
  owners: Map<Partition, string>;
  /** What is to be at the group's epoch (KIP-848). */
  target: Map<Partition, string>;
  targetEpoch: number;
  committed: Map<Partition, { offset: number; seq: number }>;
  wait: Wait | null;
  /** The last time the members had to agree anew: the entry, and why. */
  rebalance: { seq: number; reason: string } | null;
  changedSeq: number;
  gone: boolean;
}

export interface State {
  seq: number;
  atMs: number;
  brokers: { id: number; host: string; port: number; rack: string | null }[];
  /** For each partition its leader and its end offset. */
  topics: Map<string, { leader: number; end: number }[]>;
  /** A few properties of the brokers, by the name of the field. */
  settings: Record<string, number>;
  groups: Map<string, Group>;
  /** Open connections: from where. */
  connections: Map<number, string>;
  /** Requests that have no answer yet, by their numbers. */
  open: Set<number>;
}

export function emptyState(): State {
  return {
    seq: 0,
    atMs: 0,
    brokers: [],
    topics: new Map(),
    settings: {},
    groups: new Map(),
    connections: new Map(),
    open: new Set(),
  };
}

export function isInternal(topic: string): boolean {
  return topic === "__consumer_offsets" || topic === "__transaction_state";
}

type Fields = Record<string, any>;
type Pair = [string, number];

/** Change `state` by what `entry` says. Entries of unknown types change the time only. */
export function apply(state: State, entry: Entry): void {
  state.seq = entry.seq;
  state.atMs = entry.at_ms;
  const fields = entry.fields as Fields;
  OF_CLUSTER[entry.event]?.(state, entry, fields);
  const change = OF_GROUPS[entry.event];
  if (change && typeof fields.group === "string") {
    const group = groupOf(state, fields.group);
    change(group, entry, fields);
    group.changedSeq = entry.seq;
    if (group.type === "consumer") group.state = consumerState(group);
  }
}

function groupOf(state: State, name: string): Group {
  const known = state.groups.get(name);
  if (known && !known.gone) return known;
  const group: Group = {
    name,
    type: "classic",
    state: "Empty",
    number: 0,
    assignor: "",
    leader: "",
    members: new Map(),
    pending: new Map(),
    owners: new Map(),
    target: new Map(),
    targetEpoch: 0,
    committed: new Map(),
    wait: null,
    rebalance: null,
    changedSeq: 0,
    gone: false,
  };
  state.groups.set(name, group);
  return group;
}

/** Source: `ConsumerGroup.maybeUpdateGroupState`. */
function consumerState(group: Group): string {
  if (group.members.size === 0) return "Empty";
  if (group.targetEpoch < group.number || group.number === 0) return "Assigning";
  const settled = [...group.members.values()].every((member) => member.state === "STABLE" && member.epoch === group.number);
  return settled ? "Stable" : "Reconciling";
}

const nameOf = ([topic, number]: Pair): Partition => `${topic}-${number}`;

function setOwners(owners: Map<Partition, string>, said: Record<string, Pair[]>): void {
  owners.clear();
  for (const [member, pairs] of Object.entries(said)) for (const pair of pairs) owners.set(nameOf(pair), member);
}

function release(group: Group, member: string): void {
  for (const [partition, owner] of group.owners) if (owner === member) group.owners.delete(partition);
}

function heard(state: State, entry: Entry, fields: Fields): void {
  const member = state.groups.get(fields.group)?.members.get(fields.member);
  if (!member) return;
  member.heardMs = entry.at_ms;
  member.heardSeq = entry.seq;
}

const COUNTS = new Set(["Heartbeat", "SyncGroup", "OffsetCommit", "ConsumerGroupHeartbeat"]);
/** The requests by which a member shows that it lives, unless they are refused. */
const HEARD = new Set(["NONE", "REBALANCE_IN_PROGRESS"]);

const OF_CLUSTER: Record<string, (state: State, entry: Entry, fields: Fields) => void> = {
  "trace.ClusterDescribed": (state, _, fields) => {
    state.brokers = fields.brokers.map(([id, host, port, rack]: [number, string, number, string | null]) => ({ id, host, port, rack }));
    state.settings = fields.settings;
    state.topics = new Map(
      Object.entries(fields.topics as Record<string, [number, number][]>).map(([name, partitions]) => [
        name,
        partitions.map(([leader, end]) => ({ leader, end })),
      ]),
    );
  },
  "trace.RecordsAppended": (state, _, fields) => {
    const partition = state.topics.get(fields.topic)?.[fields.partition];
    if (partition) partition.end = fields.end_offset;
  },
  "trace.ConnectionOpened": (state, _, fields) => void state.connections.set(fields.connection_id, fields.client_host),
  "trace.ConnectionClosed": (state, _, fields) => void state.connections.delete(fields.connection_id),
  "trace.RequestReceived": (state, entry, fields) => {
    state.open.add(entry.seq);
    if (fields.api !== "ConsumerGroupHeartbeat") return;
    const member = state.groups.get(fields.group)?.members.get(fields.member);
    if (member && fields.details.rebalance_timeout_ms !== undefined) member.rebalanceMs = fields.details.rebalance_timeout_ms;
  },
  "trace.RequestUnanswered": (state, entry) => void state.open.delete(entry.answers ?? 0),
  "trace.ResponseSent": (state, entry, fields) => {
    state.open.delete(entry.answers ?? 0);
    if (COUNTS.has(fields.api) && HEARD.has(fields.error)) heard(state, entry, fields);
  },
};

const OF_GROUPS: Record<string, (group: Group, entry: Entry, fields: Fields) => void> = {
  "coordinator.GroupCreated": (group, _, fields) => {
    if (fields.simple) group.type = "simple";
  },
  "coordinator.MemberIdAssigned": (group, entry, fields) => {
    group.pending.set(fields.member, { sinceMs: entry.at_ms, forMs: null, seq: entry.seq });
  },
  "coordinator.MemberJoined": (group, entry, fields) => {
    if (group.type === "simple") group.type = "classic";
    group.pending.delete(fields.member);
    group.members.set(fields.member, {
      ...newMember(entry, fields),
      protocol: "classic",
      offers: fields.protocols,
      sessionMs: fields.session_timeout_ms,
      rebalanceMs: fields.rebalance_timeout_ms,
      waits: true,
    });
  },
  "coordinator.ConsumerMemberJoined": (group, entry, fields) => {
    group.type = "consumer";
    group.members.set(fields.member, {
      ...newMember(entry, fields),
      protocol: fields.protocol,
      offers: fields.regex ? [...fields.topics, fields.regex] : fields.topics,
    });
  },
  "coordinator.SubscriptionChanged": (group, _, fields) => {
    const member = group.members.get(fields.member);
    if (member) member.offers = fields.regex ? [...fields.topics, fields.regex] : fields.topics;
  },
  "coordinator.MemberRejoined": (group, entry, fields) => {
    const member = group.members.get(fields.member);
    if (!member) return;
    member.waits = true;
    member.heardMs = entry.at_ms;
    member.heardSeq = entry.seq;
  },
  "coordinator.StaticMemberReplaced": (group, entry, fields) => {
    const member = group.members.get(fields.old_member);
    if (member) {
      group.members.delete(fields.old_member);
      group.members.set(fields.new_member, { ...member, id: fields.new_member, away: false, heardMs: entry.at_ms, heardSeq: entry.seq });
    }
    for (const [partition, owner] of group.owners) if (owner === fields.old_member) group.owners.set(partition, fields.new_member);
    if (group.leader === fields.old_member) group.leader = fields.new_member;
  },
  "coordinator.StaticMemberAway": (group, _, fields) => {
    const member = group.members.get(fields.member);
    if (member) member.away = true;
  },
  "coordinator.MemberRemoved": (group, _, fields) => {
    group.members.delete(fields.member);
    group.pending.delete(fields.member);
    release(group, fields.member);
  },
  "coordinator.LeaderElected": (group, _, fields) => {
    group.leader = fields.leader;
  },
  "coordinator.StateChanged": (group, _, fields) => {
    group.state = fields.target;
    group.number = fields.generation;
    if (fields.target === "Stable" || fields.target === "Empty") group.wait = null;
    if (fields.target === "Empty") group.owners.clear();
  },
  "coordinator.RebalanceStarted": (group, entry, fields) => {
    group.rebalance = { seq: entry.seq, reason: fields.reason };
    group.wait = { kind: "join", sinceMs: entry.at_ms, forMs: fields.waits_ms, seq: entry.seq };
  },
  "coordinator.InitialDelayExtended": (group, entry, fields) => {
    group.wait = { kind: "join", sinceMs: entry.at_ms, forMs: fields.by_ms, seq: entry.seq };
  },
  "coordinator.GenerationStarted": (group, entry, fields) => {
    group.number = fields.generation;
    group.assignor = fields.protocol;
    group.leader = fields.leader;
    let longest = 0;
    for (const member of group.members.values()) {
      member.waits = false;
      member.heardMs = entry.at_ms;
      member.heardSeq = entry.seq;
      member.epoch = fields.generation;
      longest = Math.max(longest, member.rebalanceMs ?? 0);
    }
    group.wait = { kind: "sync", sinceMs: entry.at_ms, forMs: longest, seq: entry.seq };
  },
  "coordinator.AssignmentReceived": (group, _, fields) => {
    if (fields.owners) setOwners(group.owners, fields.owners);
  },
  "coordinator.GroupEpochBumped": (group, entry, fields) => {
    group.type = "consumer";
    group.number = fields.epoch;
    group.rebalance = { seq: entry.seq, reason: fields.reason };
  },
  "coordinator.TargetAssignmentComputed": (group, _, fields) => {
    group.assignor = fields.assignor;
    group.targetEpoch = fields.epoch;
    setOwners(group.target, fields.owners);
  },
  "coordinator.MemberReconciled": (group, entry, fields) => {
    const member = group.members.get(fields.member);
    release(group, fields.member);
    const revoking = fields.revoking.map(nameOf);
    for (const partition of [...fields.assigned.map(nameOf), ...revoking]) group.owners.set(partition, fields.member);
    if (!member) return;
    if (revoking.length && !member.revoking.length) member.revokingSinceMs = entry.at_ms;
    member.epoch = fields.epoch;
    member.state = fields.state;
    member.revoking = revoking;
    member.away = false;
  },
  "coordinator.GroupMigrated": (group, _, fields) => {
    group.type = fields.to === "consumer" ? "consumer" : "classic";
    group.targetEpoch = group.number;
  },
  "coordinator.OffsetsCommitted": (group, entry, fields) => commit(group, entry, fields.offsets),
  "coordinator.TransactionalOffsetsEnded": (group, entry, fields) => {
    const overtaken = new Set<Partition>(fields.overtaken.map(nameOf));
    if (fields.committed)
      commit(group, entry, fields.offsets.filter(([topic, number]: [string, number]) => !overtaken.has(`${topic}-${number}`)));
  },
  "coordinator.OffsetsRemoved": (group, _, fields) => {
    for (const pair of fields.partitions) group.committed.delete(nameOf(pair));
  },
  "coordinator.GroupRemoved": (group) => {
    group.gone = true;
    group.state = "Dead";
    group.members.clear();
    group.owners.clear();
    group.committed.clear();
    group.wait = null;
  },
};

function commit(group: Group, entry: Entry, offsets: [string, number, number][]): void {
  for (const [topic, number, offset] of offsets) group.committed.set(`${topic}-${number}`, { offset, seq: entry.seq });
}

function newMember(entry: Entry, fields: Fields): Member {
  return {
    id: fields.member,
    instanceId: fields.instance_id,
    clientId: fields.client_id,
    clientHost: fields.client_host,
    protocol: "consumer",
    offers: [],
    joinedSeq: entry.seq,
    sessionMs: null,
    rebalanceMs: null,
    heardMs: entry.at_ms,
    heardSeq: entry.seq,
    waits: false,
    away: false,
    epoch: 0,
    state: "STABLE",
    revoking: [],
    revokingSinceMs: 0,
  };
}
