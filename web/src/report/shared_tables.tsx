/** Tables that stand in several places: of one group, and of all. */
import type { AssignorResult, Lag } from "./model.ts";
import { bar, count, figures, Name, name, Table, text, time, words, type Cell } from "./table.tsx";

/** Where each group has its own part of the page, by its name. */
export type Anchors = Map<string, string>;

export function groupName(group: string, anchors: Anchors): Cell {
  const anchor = anchors.get(group);
  return anchor === undefined ? name(group) : { shown: <a href={`#${anchor}`}><Name text={group} /></a>, value: group };
}

/** With `anchors` it says whose each is. */
export function LagTable({ caption, lags, anchors }: { caption: string; lags: Lag[]; anchors?: Anchors }) {
  const highest = Math.max(0, ...lags.map(({ lag }) => lag ?? 0));
  return (
    <Table
      caption={caption}
      from={["lag"]}
      columns={[
        ...(anchors ? [words("Group")] : []),
        words("Topic"), figures("Partition"), figures("Lag", "records"), words("Status"), figures("Committed", "offset"), figures("End", "offset"), words("Last commit", "UTC"),
      ]}
      rows={lags.map((one) => [
        ...(anchors ? [groupName(one.group, anchors)] : []),
        name(one.topic), count(one.partition), bar(one.lag, highest), text(one.status ?? "unknown"), count(one.committed_offset), count(one.end_offset), time(one.last_commit_ts),
      ])}
    />
  );
}

export function WhatIfTable({ caption, results }: { caption: string; results: AssignorResult[] }) {
  const moved = Math.max(...results.map((one) => one.moved));
  const pauses = Math.max(...results.map((one) => one.pauses));
  return (
    <Table
      caption={caption}
      from={["what_if_summary"]}
      columns={[
        words("Assignor"), figures("Moved", "partitions"), figures("Needlessly", "partitions"), figures("Stopped", "partitions"), figures("Rebalances"), figures("Worst imbalance", "partitions"), figures("Without an answer", "generations"),
      ]}
      rows={results.map((one) => [
        one.assignor === "as it was" ? { shown: <b>{one.assignor}</b>, value: one.assignor } : text(one.assignor),
        bar(one.moved, moved), bar(one.moved_needlessly, moved, { fill: "var(--m1)" }), bar(one.pauses, pauses), count(one.rebalances), count(one.imbalance_worst), count(one.problems),
      ])}
    />
  );
}
