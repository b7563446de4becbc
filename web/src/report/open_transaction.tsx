/** An open transaction in a sentence: for all who read, and for one group that waits for it. */
import { Fragment } from "preact";
import type { OpenTransaction, Report } from "./model.ts";
import { groupName, type Anchors } from "./shared_tables.tsx";
import { Name, Time } from "./table.tsx";
import { amount, number } from "./text.ts";

/** Has it been open for so short a time that it is normal? */
export function isYoung({ since_ts }: OpenTransaction, { run }: Report): boolean {
  return since_ts !== null && run.now !== null && Date.parse(run.now) - since_ts < run.long_open_after_s * 1000;
}

export function OpenTransactionText({ one, anchors }: { one: OpenTransaction; anchors: Anchors }) {
  const { places, partitions, held_up: behind } = one;
  const [what, groups, more] = one.waiting.length ? ["it holds up", one.waiting, one.waiting_left_out] as const : ["groups there:", one.groups, one.groups_left_out] as const;
  return (
    <>
      <Places one={one} />: a transaction{owner(one)} is open<Since one={one} />, so that consumers that read committed stop{" "}
      {partitions === 1 ? `at offset ${number(places[0]!.stable_offset)}, ${amount(behind, "offsets")} before the end` : `before the end, by ${amount(behind, "offsets")} at most`}
      {groups.length > 0 && <>; {what} {groups.map((group, place) => <Fragment key={group}>{place > 0 && ", "}{groupName(group, anchors).shown}</Fragment>)}{more > 0 && ` and ${number(more)} more`}</>}.
    </>
  );
}

/** Why the group stands still, though nothing is wrong with it. */
export function AwaitedText({ one }: { one: OpenTransaction }) {
  return <>It waits in <Places one={one} /> for the end of a transaction{owner(one)}, which is open<Since one={one} />.</>;
}

function owner({ producer_id, transactional_id }: OpenTransaction): string {
  if (producer_id === null) return "";
  return ` of producer ${producer_id}${transactional_id === null ? "" : ` with transactional id ${transactional_id}`}`;
}

function Since({ one: { since_ts } }: { one: OpenTransaction }) {
  return since_ts === null ? null : <> since <Time ms={since_ts} /> UTC</>;
}

function Places({ one: { places, partitions } }: { one: OpenTransaction }) {
  const others = partitions - places.length;
  return <>{places.map(({ topic, partition }, place) => <Fragment key={`${topic} ${partition}`}>{place > 0 && ", "}<Name text={`${topic}-${partition}`} /></Fragment>)}{others > 0 && ` and ${number(others)} more`}</>;
}
