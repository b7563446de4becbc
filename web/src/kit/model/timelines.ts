/** The generations and epochs of each group: who was in it, who owned what, and why it began. */
import type { Entry } from "../../data.ts";
import type { Partition } from "./state.ts";

/** One generation or epoch. */
export interface Column {
  number: number;
  isEpoch: boolean;
  /** The entry that says that it began. */
  seq: number;
  atMs: number;
  reason: string;
  /** The entry of what started it: of a rebalance, or of the change of the epoch. */
  reasonSeq: number;
  members: string[];
  leader: string;
  assignor: string;
  /** By partition; null while nobody has assigned anything. */
  owners: Map<Partition, string> | null;
  ownersSeq: number;
}

type Fields = Record<string, any>;

export class Timelines {
  private columns = new Map<string, Column[]>();
  private rebalances = new Map<string, Entry>();
  private present = new Map<string, Set<string>>();

  groups(): string[] {
    return [...this.columns.keys()];
  }

  /** The generations and epochs of a group that had begun by the entry `seq`. */
  of(group: string, seq: number): Column[] {
    return (this.columns.get(group) ?? []).filter((column) => column.seq <= seq);
  }

  forget(firstSeq: number): void {
    for (const [group, columns] of this.columns) this.columns.set(group, columns.filter((column) => column.seq >= firstSeq));
  }

  learn(entry: Entry): void {
    if (!entry.event.startsWith("coordinator.")) return;
    const fields = entry.fields as Fields;
    const group = fields.group as string;
    switch (entry.event) {
      case "coordinator.RebalanceStarted":
        this.rebalances.set(group, entry);
        break;
      case "coordinator.MemberJoined":
      case "coordinator.ConsumerMemberJoined":
        this.membersOf(group).add(fields.member);
        break;
      case "coordinator.MemberRemoved":
        this.membersOf(group).delete(fields.member);
        break;
      case "coordinator.StaticMemberReplaced":
        this.membersOf(group).delete(fields.old_member);
        this.membersOf(group).add(fields.new_member);
        break;
      case "coordinator.GenerationStarted":
        this.begin(group, entry, fields.generation, false, fields.members, fields.leader, fields.protocol);
        break;
      case "coordinator.StateChanged":
        if (fields.origin === "PreparingRebalance" && fields.target === "Empty")
          this.begin(group, entry, fields.generation, false, [], "", "").owners = new Map();
        break;
      case "coordinator.AssignmentReceived":
        this.assign(group, entry, fields.generation, fields.owners);
        break;
      case "coordinator.GroupEpochBumped":
        this.begin(group, entry, fields.epoch, true, [...this.membersOf(group)], "", "");
        break;
      case "coordinator.TargetAssignmentComputed":
        this.assign(group, entry, fields.epoch, fields.owners, fields.assignor);
        break;
      case "coordinator.GroupRemoved":
        this.present.delete(group);
    }
  }

  private membersOf(group: string): Set<string> {
    const known = this.present.get(group);
    if (known) return known;
    const none = new Set<string>();
    this.present.set(group, none);
    return none;
  }

  private begin(group: string, entry: Entry, number: number, isEpoch: boolean, members: string[], leader: string, assignor: string): Column {
    const started = isEpoch ? entry : this.rebalances.get(group);
    const reason = (started?.fields.reason as string | undefined) ?? "the trace does not have its beginning";
    const column = {
      number, isEpoch, members, leader, assignor, reason,
      seq: entry.seq,
      atMs: entry.at_ms,
      reasonSeq: started?.seq ?? entry.seq,
      owners: null,
      ownersSeq: 0,
    };
    const columns = this.columns.get(group);
    if (columns) columns.push(column);
    else this.columns.set(group, [column]);
    return column;
  }

  private assign(group: string, entry: Entry, number: number, owners: Record<string, [string, number][]> | null, assignor = ""): void {
    const column = this.columns.get(group)?.findLast((each) => each.number === number);
    if (!column || !owners) return;
    column.owners = new Map(
      Object.entries(owners).flatMap(([member, pairs]) => pairs.map(([topic, place]) => [`${topic}-${place}`, member] as const)),
    );
    column.ownersSeq = entry.seq;
    if (assignor) column.assignor = assignor;
  }
}
