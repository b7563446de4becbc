/** Tables that stand in several places: of one group, and of all. */
import type { AssignorResult, Lag } from "./model.ts";
import { bars, count, figures, Name, name, span, Table, text, time, words, type Cell } from "./table.tsx";

/** Where each group has its own part of the page, by its name. */
export type Anchors = Map<string, string>;

export function groupName(group: string, anchors: Anchors): Cell {
  const anchor = anchors.get(group);
  return anchor === undefined ? name(group) : { shown: <a href={`#${anchor}`}><Name text={group} /></a>, value: group };
}

/** With `anchors` it says whose each is. */
export function LagTable({ caption, lags, anchors }: { caption: string; lags: Lag[]; anchors?: Anchors }) {
  return (
    <Table
      caption={caption}
      columns={[
        ...(anchors ? [words("Group")] : []),
        words("Topic"), figures("Partition"), bars("Lag", "records"), figures("Oldest unread", "age"), words("Status"), figures("Committed", "offset"), figures("End", "offset"), words("Last commit", "UTC"),
      ]}
      rows={lags.map((one) => [
        ...(anchors ? [groupName(one.group, anchors)] : []),
        name(one.topic), count(one.partition), count(one.lag), span(one.lag_seconds), text(one.status ?? "unknown"), count(one.committed_offset), count(one.end_offset), time(one.last_commit_ts),
      ])}
    />
  );
}

export function WhatIfTable({ caption, results }: { caption: string; results: AssignorResult[] }) {
  const highest = Math.max(...results.map((one) => one.moved));
  return (
    <Table
      caption={caption}
      columns={[
        words("Assignor"), bars("Moved", "partitions"), bars("Needlessly", "partitions", { highest }), bars("Stopped", "partitions"), figures("Rebalances"), figures("Worst imbalance", "partitions"), figures("Without an answer", "generations"),
      ]}
      rows={results.map((one) => [
        one.assignor === "as it was" ? { shown: <b>{one.assignor}</b>, value: one.assignor } : text(one.assignor),
        count(one.moved), count(one.moved_needlessly, 0, "var(--m1)"), count(one.pauses), count(one.rebalances), count(one.imbalance_worst), count(one.problems),
      ])}
    />
  );
}
