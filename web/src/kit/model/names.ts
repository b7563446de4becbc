/** Short names of members, instead of the forty characters of a member id: as groupcoord/testing/trace/short_member_names.py. */
import type { Entry } from "../../data.ts";

const LETTERS = 4;

export class ShortNames {
  private bases = new Map<string, string>();
  private names = new Map<string, string>();
  private ids: RegExp | null = null;
  private stale = false;

  /** Learn from an entry that introduces a member. */
  learn(entry: Entry): void {
    const fields = entry.fields as Record<string, string | null>;
    switch (entry.event) {
      case "coordinator.MemberJoined":
      case "coordinator.ConsumerMemberJoined":
        this.set(fields.member!, fields.instance_id ?? fields.client_id ?? "");
        break;
      case "coordinator.StaticMemberReplaced":
        this.set(fields.new_member!, fields.instance_id!);
        break;
      case "coordinator.MemberIdAssigned":
        if (entry.cause.type === "Requested" && !this.bases.has(fields.member!))
          this.set(fields.member!, (entry.cause.client_id as string | null) ?? "");
    }
  }

  private set(member: string, base: string): void {
    if (this.bases.get(member) === base) return;
    this.bases.set(member, base);
    this.stale = true;
  }

  /** The name of a member; its id if nothing more is known. */
  of(member: string): string {
    this.refresh();
    return this.names.get(member) ?? member;
  }

  /** A text with names for all member ids in it, where they stand as words. */
  shortened(text: string): string {
    this.refresh();
    return this.ids ? text.replace(this.ids, (id) => this.names.get(id) ?? id) : text;
  }

  private refresh(): void {
    if (!this.stale) return;
    this.stale = false;
    const ofBase = new Map<string, string[]>();
    for (const [member, base] of this.bases) ofBase.set(base, [...(ofBase.get(base) ?? []), member]);
    this.names.clear();
    for (const [base, members] of ofBase) {
      if (members.length === 1 && base) this.names.set(members[0]!, base);
      else for (const [member, name] of toldApart(base, members)) this.names.set(member, name);
    }
    const ids = [...this.names.keys()].sort((one, other) => other.length - one.length);
    const escaped = ids.map((id) => id.replace(/[\\^$.*+?()[\]{}|]/g, "\\$&"));
    this.ids = ids.length ? new RegExp(`(?<![\\w-])(?:${escaped.join("|")})(?![\\w-])`, "g") : null;
  }
}

function toldApart(base: string, members: string[]): [string, string][] {
  const parts = members.map((member) => (base && member.startsWith(`${base}-`) ? member.slice(base.length + 1) : member));
  let letters = LETTERS;
  const different = (count: number) => new Set(parts.map((part) => part.slice(0, count))).size;
  while (different(letters) < new Set(parts).size) letters += 1;
  return members.map((member, place) => {
    const part = parts[place]!.slice(0, letters);
    return [member, base ? `${base}-${part}` : part];
  });
}
