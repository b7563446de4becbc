/** What changed nothing, folded: heartbeats that were fine and fetches that found nothing are one row for each client.
 *  The rule is that of groupcoord/testing/trace/folding.py. */
import type { Entry } from "../../data.ts";
import type { History } from "./history.ts";
import { moment } from "./history.ts";

type Fields = Record<string, any>;

/** Knows which entries changed nothing. */
export class QuietExchanges {
  private quiet = new Set<number>();
  private fetchTimers = new Map<number, number>();

  has(seq: number): boolean {
    return this.quiet.has(seq);
  }

  learn(entry: Entry, request: Entry | null): void {
    if (entry.event === "trace.TimerExpired" && (entry.fields as Fields).kind === "fetch") this.fetchTimers.set(entry.seq, 0);
    const ofTimer = entry.caused_by !== null && this.fetchTimers.has(entry.caused_by);
    if (entry.event === "trace.ResponseSent" && request && changedNothing(request.fields, entry.fields)) {
      this.quiet.add(request.seq).add(entry.seq);
      if (ofTimer && this.fetchTimers.get(entry.caused_by!) === 0) this.quiet.add(entry.caused_by!);
    } else if (ofTimer) {
      this.fetchTimers.set(entry.caused_by!, 1); // it led to something
      this.quiet.delete(entry.caused_by!);
    }
  }

  forget(firstSeq: number): void {
    for (const known of [this.quiet, this.fetchTimers]) for (const seq of known.keys()) if (seq < firstSeq) known.delete(seq);
  }
}

function changedNothing(request: Fields, answer: Fields): boolean {
  if (answer.error !== "NONE") return false;
  switch (answer.api) {
    case "Heartbeat":
      return true;
    case "Fetch":
      return answer.details.bytes === 0;
    case "ConsumerGroupHeartbeat": {
      const saidNothing = !Object.keys(request.details).length && !Object.keys(answer.details).length;
      return saidNothing && request.generation === answer.generation && request.generation > 0;
    }
    default:
      return false;
  }
}

/** One row of a sequence diagram. */
export type Row =
  | { kind: "request" | "answer" | "dropped" | "event"; seq: number; atMs: number; lane: string; entry: Entry }
  | { kind: "quiet"; seq: number; atMs: number; lane: string; words: string; entries: number[] };

/** The rows of a diagram of the entries from `from` on, or of those that concern one group. */
export function rowsOf(history: History, group: string | null, fold: boolean): Row[] {
  const rows: Row[] = [];
  let run: Entry[] = [];
  const flush = () => {
    rows.push(...foldedRun(run, history));
    run = [];
  };
  for (const entry of history.entries) {
    if (group !== null && !concerns(entry, group)) continue;
    if (fold && history.quiet.has(entry.seq)) {
      run.push(entry);
      continue;
    }
    const kind = KINDS[entry.event];
    if (kind === "none") continue;
    if (run.length) flush();
    const isRequest = kind !== undefined;
    rows.push({ kind: kind ?? "event", seq: entry.seq, atMs: entry.at_ms, lane: isRequest ? history.client(entry) : "", entry });
  }
  flush();
  return rows;
}

const KINDS: Record<string, "request" | "answer" | "dropped" | "none"> = {
  "trace.RequestReceived": "request",
  "trace.ResponseSent": "answer",
  "trace.RequestUnanswered": "dropped",
  "trace.ConnectionOpened": "none",
  "trace.ConnectionClosed": "none",
  "trace.ClusterDescribed": "none",
  "coordinator.RequestRefused": "none", // the answer says it
};

/** Is an entry about `group`, or about several groups and this is one of them, or is it a timer of it? */
function concerns(entry: Entry, group: string): boolean {
  const fields = entry.fields as Fields;
  if (fields.group) return fields.group === group;
  const { groups = [], coordinator_keys: keys = [] } = fields.details ?? {};
  if (groups.includes?.(group) || keys.includes?.(group) || fields.scope === group) return true;
  if (entry.event !== "trace.RecordsAppended") return false;
  return (fields.records as [number, string, string | null][]).some(([, key]) => key.includes(`="${group}"`));
}

function foldedRun(run: Entry[], history: History): Row[] {
  const exchanges = new Map<string, Entry[]>();
  for (const entry of run) {
    if (entry.event !== "trace.RequestReceived") continue;
    const id = `${(entry.fields as Fields).api} ${who(entry, history)} ${history.client(entry)}`;
    const known = exchanges.get(id);
    if (known) known.push(entry);
    else exchanges.set(id, [entry]);
  }
  return [...exchanges.values()].map((requests) => {
    const first = requests[0]!;
    const last = requests.at(-1)!;
    const { api } = first.fields as Fields;
    const count = requests.length;
    const outcome = api === "Fetch" ? "nothing new" : count === 1 ? "fine" : "all fine";
    const [since, until] = [first, last].map((entry) => moment(entry.at_ms - history.startMs));
    const times = since === until ? "" : `, ${since} to ${until}`;
    const words = `${count === 1 ? "" : `${count} times `}${api} of ${who(first, history)}, ${outcome}${times}`;
    return { kind: "quiet", seq: first.seq, atMs: last.at_ms, lane: history.client(first), words, entries: requests.map((entry) => entry.seq) };
  });
}

/** The member that asks, by its short name, or else its client. */
function who(entry: Entry, history: History): string {
  const { member } = entry.fields as Fields;
  return member ? history.names.of(member) : history.client(entry);
}
