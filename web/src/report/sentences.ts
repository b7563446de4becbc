/** What is wrong, in words: of a group, of a storm. */
import type { GroupSummary, Storm, Vocabulary } from "./model.ts";
import { amount, number, shortened } from "./text.ts";

/** `2 storms of rebalances, 1 of 2 partitions whose lag is not OK`: what gives most of the score is first; "" if nothing is wrong. */
export function reasons(group: GroupSummary, { symptoms }: Vocabulary, most = symptoms.length): string {
  const points = (column: string) => group.points[column] ?? 0;
  const found = symptoms.filter(({ column }) => points(column) > 0).sort((one, other) => points(other.column) - points(one.column));
  const parts = found.slice(0, most).map(({ column, meaning, among }) => {
    const seen = group[column] as number;
    if (among) return `${number(seen)} of ${number(group[among] as number)} ${meaning}`;
    const [unit, ...more] = meaning.split(" ");
    return [amount(seen, unit!), ...more].join(" ");
  });
  return parts.join(", ") + (found.length > most ? ` and ${number(found.length - most)} more` : "");
}

/** The symptom that is told with its transaction, not again with each group that waits for it. */
const AWAITED = "awaited_transactions";

/** The groups with symptoms of their own, the most troubled first, and the words for these. */
export function ownTrouble(groups: GroupSummary[], vocabulary: Vocabulary): { groups: GroupSummary[]; vocabulary: Vocabulary } {
  const symptoms = vocabulary.symptoms.filter(({ column }) => column !== AWAITED);
  const points = (group: GroupSummary) => symptoms.reduce((sum, { column }) => sum + (group.points[column] ?? 0), 0);
  const troubled = groups.filter((group) => points(group) > 0).sort((one, other) => points(other) - points(one));
  return { groups: troubled, vocabulary: { ...vocabulary, symptoms } };
}

/** What members did if a cause is of this kind. */
const DEEDS: Record<string, string> = {
  group_started: "joined",
  group_refilled: "joined",
  members_joined: "joined",
  members_restarted: "restarted",
  members_joined_and_left: "joined, left or timed out",
  members_left: "left or timed out",
  group_emptied: "left or timed out",
};
const NAMED = 3;

/** The most frequent kind of cause of a storm: `bob restarted`, with the members if the kind is about some. */
export function causeOf({ cause_kind, came_and_went: who }: Storm, { cause_kinds }: Vocabulary): string {
  const deed = DEEDS[cause_kind];
  if (!deed || !who.length) return cause_kinds[cause_kind] ?? cause_kind;
  const names = who.slice(0, NAMED).map(({ name, members }) => (shortened(name) || "(empty)") + (members > 1 ? ` (up to ${number(members)} members)` : ""));
  return `${names.join(", ")}${who.length > NAMED ? " and others" : ""} ${deed}`;
}

const AS_IT_WAS = "as it was";

/** `sticky would have stopped 138 partitions instead of 378`; "" if that was not asked, or nothing would have stopped fewer. */
export function alternativeTo({ what_if }: Storm): string {
  const real = what_if.find(({ assignor }) => assignor === AS_IT_WAS);
  const [best] = what_if.filter(({ pauses }) => real && pauses < real.pauses).sort((one, other) => one.pauses - other.pauses);
  return best && real ? `${shortened(best.assignor)} would have stopped ${amount(best.pauses, "partitions")} instead of ${number(real.pauses)}` : "";
}
