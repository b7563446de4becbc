/** All entries of a trace, and the state of the cluster after any of them. A long life is cut at its beginning. */
import type { Batch, Entry, Header } from "../../data.ts";
import { CoordinatorLog } from "./coordinator_log.ts";
import { QuietExchanges } from "./folding.ts";
import { ShortNames } from "./names.ts";
import { apply, emptyState, type State } from "./state.ts";
import { Timelines } from "./timelines.ts";

/** A snapshot of the state is kept for so many entries. */
const EVERY = 1_000;
/** More entries are not kept: a live page lives long. */
export const LIMIT = 100_000;
const CUT = 20_000;
/** What members ask for themselves; LeaveGroup may be an administrator's. */
const OF_MEMBERS = new Set(["JoinGroup", "SyncGroup", "Heartbeat", "ConsumerGroupHeartbeat"]);

export class History {
  header: Header | null = null;
  entries: Entry[] = [];
  names = new ShortNames();
  quiet = new QuietExchanges();
  timelines = new Timelines();
  log = new CoordinatorLog();
  /** Counts changes, so that who draws knows that there is something new. */
  version = 0;
  /** How many entries were let go of here, beside those that the trace itself had dropped. */
  cut = 0;

  private snapshots: State[] = [emptyState()];
  private newest = emptyState();
  private cursor = { state: emptyState(), count: 0 };
  private followers = new Map<number, number[]>();
  private answers = new Map<number, number>();
  private hues = new Map<string, number>();
  private clients = new Map<number, { id: string; members: Set<string> }>();

  /** Which of the eight colours a member has: 0 to 7, in the order in which they are asked for. */
  hue(member: string): number {
    const name = this.names.of(member);
    if (!this.hues.has(name)) this.hues.set(name, this.hues.size % 8);
    return this.hues.get(name)!;
  }

  get startMs(): number {
    return this.header?.start_ms ?? this.entries[0]?.at_ms ?? 0;
  }

  add(batch: Batch): void {
    if (batch.header) this.begin(batch.header);
    let lastSeq = this.entries.at(-1)?.seq ?? 0;
    for (const entry of batch.entries) {
      if (entry.seq <= lastSeq) continue; // told twice, as after a connection that broke
      lastSeq = entry.seq;
      this.push(entry);
    }
    if (this.entries.length > LIMIT) this.cutBeginning(CUT);
    this.version += 1;
  }

  private begin(header: Header): void {
    Object.assign(this, new History(), { version: this.version });
    this.header = header;
  }

  private push(entry: Entry): void {
    if (this.entries.length && this.entries.length % EVERY === 0) this.snapshots.push(structuredClone(this.newest));
    this.entries.push(entry);
    apply(this.newest, entry);
    this.names.learn(entry);
    if (entry.caused_by !== null) {
      const others = this.followers.get(entry.caused_by);
      if (others) others.push(entry.seq);
      else this.followers.set(entry.caused_by, [entry.seq]);
    }
    if (entry.answers !== null) this.answers.set(entry.answers, entry.seq);
    this.learnClient(entry);
    this.quiet.learn(entry, this.entry(entry.answers));
    this.timelines.learn(entry);
    this.log.learn(entry);
  }

  private learnClient(entry: Entry): void {
    const fields = entry.fields as Record<string, any>;
    if (fields.correlation_id === undefined) return;
    let client = this.clients.get(fields.connection_id);
    if (!client) {
      client = { id: fields.client_id ?? `connection ${fields.connection_id}`, members: new Set() };
      this.clients.set(fields.connection_id, client);
    }
    if (fields.member && OF_MEMBERS.has(fields.api)) client.members.add(fields.member);
  }

  /** What the client of a request is called: as its member, if only one speaks there, or else by its client id. */
  client(entry: Entry): string {
    const client = this.clients.get(entry.fields.connection_id as number)!;
    return client.members.size === 1 ? this.names.of([...client.members][0]!) : client.id;
  }

  /** Let go of the first `count` entries, a multiple of EVERY; the state at the new beginning is kept. */
  private cutBeginning(count: number): void {
    for (const entry of this.entries.splice(0, count)) {
      this.followers.delete(entry.seq);
      this.answers.delete(entry.seq);
    }
    this.snapshots.splice(0, count / EVERY);
    this.cursor = { state: structuredClone(this.snapshots[0]!), count: 0 };
    this.cut += count;
    const first = this.entries[0]!.seq;
    this.quiet.forget(first);
    this.timelines.forget(first);
    this.log.forget(first);
  }

  /** The state after the first `count` entries. It is changed by the next call: use it at once. */
  at(count: number): State {
    if (count >= this.entries.length) return this.newest;
    const place = Math.min(Math.floor(count / EVERY), this.snapshots.length - 1);
    if (this.cursor.count > count || this.cursor.count < place * EVERY) {
      this.cursor = { state: structuredClone(this.snapshots[place]!), count: place * EVERY };
    }
    while (this.cursor.count < count) apply(this.cursor.state, this.entries[this.cursor.count++]!);
    return this.cursor.state;
  }

  /** The place of the first entry whose number is `seq` or more. */
  placeOf(seq: number): number {
    return firstPlace(this.entries, (entry) => entry.seq >= seq);
  }

  entry(seq: number | null): Entry | null {
    if (seq === null) return null;
    const found = this.entries[this.placeOf(seq)];
    return found?.seq === seq ? found : null;
  }

  /** What followed from an entry, in order. */
  consequences(seq: number): number[] {
    return this.followers.get(seq) ?? [];
  }

  answerTo(seq: number): number | null {
    return this.answers.get(seq) ?? null;
  }

  /** What led to an entry, the first cause first. */
  causes(seq: number): Entry[] {
    const chain: Entry[] = [];
    for (let entry = this.entry(seq); entry && chain.length < 20; entry = this.entry(entry.caused_by)) {
      if (entry.seq !== seq) chain.unshift(entry);
    }
    return chain;
  }

  /** `54.0 s`: since the beginning of the trace. */
  moment(atMs: number): string {
    return moment(atMs - this.startMs);
  }
}

/** `61.2 s`: to the millisecond where that says something, and to a tenth of a second at least. */
export function moment(ms: number): string {
  const [whole, parts] = (ms / 1000).toFixed(3).split(".") as [string, string];
  return `${whole.replace(/\B(?=(\d{3})+$)/g, ",")}.${parts[0]}${parts.slice(1).replace(/0+$/, "")} s`;
}

/** The first place where `fits` is true, which it is from there on; the length of `items` if nowhere. */
export function firstPlace<T>(items: readonly T[], fits: (item: T) => boolean): number {
  let low = 0;
  let high = items.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (fits(items[middle]!)) high = middle;
    else low = middle + 1;
  }
  return low;
}
