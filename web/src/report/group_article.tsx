/** One group that has a section: what happened to it, drawn and in words. */
import { useEffect, useState } from "preact/hooks";
import { hasEpochs, type AssignorResult, type GroupDetail, type Vocabulary } from "./model.ts";
import { memberColours, OTHERS, OwnershipChart, TimelineChart } from "./group_charts.tsx";
import { AwaitedText } from "./open_transaction.tsx";
import { LagTable, WhatIfTable } from "./shared_tables.tsx";
import { bars, count, figures, LeftOut, Name, name, Table, text, Time, time, words, type Cell } from "./table.tsx";
import { reasons } from "./sentences.ts";
import { amount, duration, number, visible } from "./text.ts";

interface ArticleProps {
  id: string;
  detail: GroupDetail;
  vocabulary: Vocabulary;
  whatIf: AssignorResult[] | undefined;
  /** Is it open from the beginning? */
  isOpen: boolean;
}

/** A group under its name and what is wrong with it; what happened to it is drawn when somebody looks, or prints. */
export function GroupArticle({ id, detail, vocabulary, whatIf, isOpen: isFirst }: ArticleProps) {
  const isWanted = () => location.hash === `#${id}`;
  const [isOpen, setOpen] = useState(() => isFirst || isWanted());
  useEffect(() => {
    const follow = () => isWanted() && setOpen(true);
    const open = () => setOpen(true);
    addEventListener("hashchange", follow);
    addEventListener("beforeprint", open);
    return () => {
      removeEventListener("hashchange", follow);
      removeEventListener("beforeprint", open);
    };
  }, [id]);
  const { group } = detail;
  return (
    <article id={id}>
      <details open={isOpen} onToggle={(event) => setOpen(event.currentTarget.open)}>
        <summary><h3><Name text={group.group} longest={120} /></h3> <span class="quiet">{reasons(group, vocabulary) || "nothing is wrong with it"}</span></summary>
        {isOpen && <History detail={detail} vocabulary={vocabulary} whatIf={whatIf} />}
      </details>
    </article>
  );
}

function History({ detail, vocabulary, whatIf }: Omit<ArticleProps, "id" | "isOpen">) {
  const { group } = detail;
  return (
    <>
      <p>
        {group.kind}, {group.state === null ? "gone by now" : group.state === "Empty" ? "without members" : amount(group.members, "members")}
        {group.protocol && <>; assignor <Name text={group.protocol} /></>}
        {group.generation ? `; ${hasEpochs(detail) ? "assignment epoch" : "generation"} ${number(group.generation)}` : ""}. {scoreText(detail, vocabulary)}{group.whole_from_ts !== null && <> Of what was before <Time ms={group.whole_from_ts} /> UTC, compaction has taken some.</>}
      </p>
      {detail.rebalances.filter(({ cause_kind }) => cause_kind === "became_consumer" || cause_kind === "became_classic").map(({ at_ts, likely_cause }) => (
        <p key={at_ts}><Time ms={at_ts} />: {visible(likely_cause)}.</p>
      ))}
      {detail.awaited.map((one) => <p key={one.producer_id}><AwaitedText one={one} /></p>)}
      <TimelineChart detail={detail} />
      <InWords detail={detail} vocabulary={vocabulary} />
      <OwnershipChart detail={detail} />
      <Shares detail={detail} />
      {detail.lags.length > 0 && (
        <>
          <LagTable caption="Its longest lags" lags={detail.lags} />
          <LeftOut count={detail.lags_left_out} what="partitions with shorter lags, or unknown ones" table="lag" />
        </>
      )}
      <Gaps detail={detail} />
      {whatIf && <WhatIfTable caption="With other assignors" results={whatIf} />}
    </>
  );
}

/** How much of the score each symptom contributes. */
function scoreText({ group }: GroupDetail, { symptoms }: Vocabulary): string {
  const parts = symptoms.filter(({ column }) => group.points[column]).map(({ column, meaning }) => `${meaning} ${number(group.points[column]!, 1)}`);
  return `Score ${number(group.score, 1)}${parts.length ? `: ${parts.join(", ")}` : ""}.`;
}

/** The numbers behind the drawing. */
function InWords({ detail, vocabulary }: { detail: GroupDetail; vocabulary: Vocabulary }) {
  const { epochs, changes, rebalances, members } = detail;
  const isModern = hasEpochs(detail);
  return (
    <>
      {epochs.length > 0 && (
        <details>
          <summary>{amount(epochs.length, "epochs")} in words</summary>
          <Table
            caption="The epochs that are drawn"
            columns={[figures("Epoch"), words("At", "UTC"), words("What began it"), figures("Members"), figures("Classic", "members"), figures("To give back", "partitions"), figures("To get", "partitions"), words("Target after"), words("All have it after")]}
            rows={epochs.map((one) => [
              count(one.group_epoch), time(one.at_ts, true), name(one.cause, 200), count(one.members), count(one.classic_members), count(one.to_revoke), count(one.to_assign), after(one.at_ts, one.assigned_ts), after(one.at_ts, one.reconciled_ts),
            ])}
          />
          <LeftOut count={detail.epochs_left_out} what="epochs, that were earlier" table="epochs" />
        </details>
      )}
      {changes.length > 0 && (
        <details>
          <summary>{amount(changes.length, "changes")} in the lives of members in words</summary>
          <Table
            caption="What members had, and what they were to have"
            columns={[words("At", "UTC"), words("Client"), words("Member"), words("What"), figures("Epoch"), figures("Has", "partitions"), figures("To give back", "partitions"), figures("Target", "partitions")]}
            rows={changes.map((one) => [
              time(one.at_ts, true), name(`${one.client_id ?? ""}${one.is_classic ? " (classic)" : ""}`), name(one.member), text(vocabulary.member_events[one.event] ?? one.event), count(one.member_epoch), count(one.partitions), count(one.revoking), count(one.target),
            ])}
          />
          <LeftOut count={detail.changes_left_out} what="changes, that were earlier or of members that are not drawn" table="members" />
        </details>
      )}
      {rebalances.length > 0 && (
        <details>
          <summary>{amount(rebalances.length, "rebalances")} in words</summary>
          <Table
            caption="The rebalances that are drawn"
            columns={[figures(isModern ? "Epoch" : "Generation"), words("At", "UTC"), words("Likely cause"), figures("Members"), figures("Partitions"), figures("Moved"), figures("Needlessly"), figures("Imbalance")]}
            rows={rebalances.map((one) => [
              count(one.generation), time(one.at_ts, true), name(one.likely_cause, 200), count(one.members_after), count(one.partitions_total), count(one.moved), count(one.moved_needlessly), count(one.imbalance),
            ])}
          />
        </details>
      )}
      {members.length > 0 && (
        <details>
          <summary>{amount(members.length, "members")} in words</summary>
          <Table
            caption="The members that are drawn"
            columns={[words("Client"), words("Member"), words("From", "UTC"), words("Until", "UTC"), figures("Last", "partitions")]}
            rows={members.map(({ client_id, member, spans }) => {
              const last = spans.at(-1)!;
              const until = last.until_ts >= detail.end_ts ? { shown: "not seen leaving", value: last.until_ts } : time(last.until_ts);
              return [name(client_id), name(member), time(spans[0]!.from_ts), until, count(last.partitions)];
            })}
          />
        </details>
      )}
    </>
  );
}

function after(fromMs: number, toMs: number | null): Cell {
  return toMs === null ? time(null) : lasting(toMs - fromMs);
}

function lasting(ms: number): Cell {
  return { shown: duration(ms), value: ms };
}

function Shares({ detail }: { detail: GroupDetail }) {
  if (!detail.shares) return null;
  const { generation, fair_share, shares } = detail.shares;
  const isModern = hasEpochs(detail);
  const colours = memberColours(detail.members);
  return (
    <>
      <Table
        caption={`${isModern ? "Who was to have how much in epoch" : "Who has how much in generation"} ${number(generation)}; a fair share (the line) is ${number(fair_share, 2)} partitions`}
        columns={[words("Client"), words("Member"), bars("Has", "partitions", { highest: fair_share, mark: fair_share })]}
        rows={shares.map(({ client_id, member, partitions }) => [
          name(client_id), name(member), count(partitions, 0, colours.get(member) ?? OTHERS),
        ])}
      />
      <LeftOut count={detail.shares_left_out} what="members, that have no more" table="skew" />
    </>
  );
}

function Gaps({ detail }: { detail: GroupDetail }) {
  if (!detail.gaps.length) return null;
  return (
    <>
      <Table
        caption="Where its commits stopped for longest"
        columns={[words("Topic"), figures("Partition"), words("From", "UTC"), words("To", "UTC"), words("For"), words("Usual")]}
        rows={detail.gaps.map((one) => [
          name(one.topic), count(one.partition), time(one.from_ts), one.to_ts === null ? { shown: "end of the log", value: null } : time(one.to_ts), lasting(1_000 * one.gap_seconds), lasting(1_000 * one.usual_seconds),
        ])}
      />
      <LeftOut count={detail.gaps_left_out} what="pauses that were shorter" table="commit_gaps" />
    </>
  );
}
