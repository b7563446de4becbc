/** `report.json`, as docs/pipeline.md has it. Its times, names that end in `_ts`, are milliseconds since 1970 here. */

export interface Report {
  run: { source: string; as_of: string | null; now: string | null; long_open_after_s: number };
  overview: Overview;
  groups: GroupSummary[];
  groups_left_out: number;
  details: GroupDetail[];
  causes: { cause_kind: string; count: number; groups: { group: string; count: number }[]; in_other_groups: number }[];
  storms: Storm[];
  storms_left_out: number;
  pauses: { group: string; from_ts: number; to_ts: number | null; seconds: number; partitions: number }[];
  pauses_left_out: number;
  open_transactions: OpenTransaction[];
  open_transactions_left_out: number;
  statuses: { status: string | null; partitions: number; lag: number | null }[];
  losses: Lag[];
  losses_left_out: number;
  expiring: { group: string; expire_ts: number; lag: number | null }[];
  expiring_left_out: number;
  lags: Lag[];
  what_if: { together: AssignorResult[]; groups: Record<string, AssignorResult[]> } | null;
  quality: DataQuality;
}

export interface Bins {
  start_ts: number;
  width_ms: number;
  pieces: number;
}

export interface CommitHistogram {
  bins: Bins;
  counts: number[];
  table: string;
}

export interface Overview {
  records: number;
  log_partitions: number;
  from_ts: number | null;
  to_ts: number | null;
  missing: number;
  whole_from_ts: number | null;
  groups_with_gaps: number;
  groups: number;
  groups_with_members: number;
  groups_gone: number;
  commits: number;
  rebalances: number;
  hidden_generations: number;
  moved: number;
  moved_needlessly: number;
  storms: number;
  commit_gaps: number;
  zombies: number;
  partitions: number;
  late_partitions: number;
  lag: number | null;
  activity: { bins: Bins; rebalances: number[]; commits: CommitHistogram } | null;
}

export interface GroupSummary {
  group: string;
  kind: string;
  state: string | null;
  protocol: string | null;
  generation: number | null;
  members: number | null;
  last_ts: number | null;
  rebalances: number;
  moved: number;
  moved_needlessly: number;
  storms: number;
  commits: number;
  commit_gaps: number;
  zombies: number;
  late_partitions: number;
  lost_partitions: number;
  awaited_transactions: number;
  lag: number | null;
  whole_from_ts: number | null;
  score: number;
  points: Record<string, number>;
}

export interface Rebalance {
  kind: string;
  generation: number;
  at_ts: number;
  cause_kind: string;
  likely_cause: string;
  members_before: number | null;
  members_after: number | null;
  partitions_total: number | null;
  moved: number | null;
  moved_needlessly: number | null;
  imbalance: number | null;
}

export interface Epoch {
  group_epoch: number | null;
  at_ts: number;
  cause_kind: string;
  cause: string;
  members: number;
  classic_members: number;
  assigned_ts: number | null;
  to_revoke: number | null;
  to_assign: number | null;
  reconciled_ts: number | null;
}

interface MemberChange {
  at_ts: number;
  member: string;
  client_id: string | null;
  is_classic: boolean;
  event: string;
  member_epoch: number | null;
  partitions: number | null;
  revoking: number;
  target: number | null;
}

export interface MemberTimeline {
  member: string;
  client_id: string;
  spans: { from_ts: number; until_ts: number; partitions: number; is_settled: boolean }[];
}

interface PartitionTimeline {
  topic: string;
  partition: number;
  spans: { from_ts: number; until_ts: number; member: string | null; is_revoking: boolean }[];
}

export interface Storm {
  group: string;
  kind: string;
  from_ts: number;
  to_ts: number;
  rebalances: number;
  hidden_generations: number;
  members_lowest: number | null;
  members_highest: number | null;
  moved: number | null;
  cause_kind: string;
  of_cause_kind: number;
  likely_causes: string[];
  came_and_went: { name: string; members: number }[];
  what_if: { assignor: string; pauses: number }[];
}

export interface OpenTransaction {
  producer_id: number | null;
  transactional_id: string | null;
  since_ts: number | null;
  partitions: number;
  places: { topic: string; partition: number; stable_offset: number; end_offset: number }[];
  held_up: number;
  groups: string[];
  groups_left_out: number;
  waiting: string[];
  waiting_left_out: number;
}

export interface Lag {
  group: string;
  topic: string;
  partition: number;
  committed_offset: number | null;
  end_offset: number | null;
  lag: number | null;
  last_commit_ts: number | null;
  status: string | null;
  lag_seconds: number | null;
  log_start_offset: number | null;
  records_lost: number | null;
  expire_ts: number | null;
}

export interface GroupDetail {
  group: GroupSummary;
  start_ts: number;
  end_ts: number;
  rebalances: Rebalance[];
  rebalances_left_out: number;
  epochs: Epoch[];
  epochs_left_out: number;
  members: MemberTimeline[];
  members_left_out: number;
  changes: MemberChange[];
  changes_left_out: number;
  commits: CommitHistogram | null;
  storms: Storm[];
  partitions: PartitionTimeline[];
  partitions_left_out: number;
  owned_from_ts: number | null;
  shares: { generation: number; fair_share: number; shares: { member: string; client_id: string; partitions: number }[] } | null;
  shares_left_out: number;
  lags: Lag[];
  lags_left_out: number;
  gaps: { topic: string; partition: number; from_ts: number; to_ts: number | null; gap_seconds: number; usual_seconds: number }[];
  gaps_left_out: number;
  awaited: OpenTransaction[];
}

export interface AssignorResult {
  assignor: string;
  generations: number;
  problems: number;
  moved: number;
  moved_needlessly: number;
  pauses: number;
  rebalances: number;
  imbalance_worst: number | null;
}

interface DataQuality {
  counts: NamedCount[];
  bad: NamedCount[];
  problems: NamedCount[];
  log_partitions: LogPartition[];
  log_partitions_left_out: number;
  warnings: { where: string; what: string; log_partition: number | null; records: number | null; bytes: number | null }[];
  warnings_left_out: number;
  adds_up: boolean;
}

export interface NamedCount {
  what: string;
  count: number;
}

interface LogPartition {
  log_partition: number;
  first_offset: number;
  last_offset: number;
  records: number;
  hidden: number;
  missing: number;
  first_ts: number | null;
  last_ts: number | null;
  whole_from_ts: number | null;
}

/** What the pipeline calls things: it puts this beside the report. */
export interface Vocabulary {
  symptoms: { column: keyof GroupSummary; meaning: string; table: string; points: number; among: keyof GroupSummary | null }[];
  cause_kinds: Record<string, string>;
  member_events: Record<string, string>;
}

/** The report in `text`. A time that no calendar has stands in it as `123 ms since 1970`. */
export function parseReport(text: string): Report {
  return JSON.parse(text, (key, value: unknown) => {
    if (!key.endsWith("_ts") || typeof value !== "string") return value;
    return value.endsWith(" ms since 1970") ? parseInt(value, 10) : Date.parse(value);
  }) as Report;
}

/** Does its history consist of epochs? That of a classic group consists of generations. */
export function hasEpochs({ group }: GroupDetail): boolean {
  return group.kind !== "classic" && group.kind !== "simple";
}
