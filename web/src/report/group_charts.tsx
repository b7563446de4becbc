/** What is drawn of a group: its members, rebalances and commits, and whose each partition was; and of all groups together. */
import { box, Chart, ROW_HEIGHT, timeScale, type Line, type Row, type Shape } from "./chart.tsx";
import { type Bins, type CommitHistogram, type Epoch, type GroupDetail, type MemberTimeline, type Overview, type Rebalance } from "./model.ts";
import { amount, duration, moment, number, shortened } from "./text.ts";
import { LeftOut } from "./table.tsx";

const TALL = 48;
const HUES = 8;
/** A larger number of things left out is a lower bound, because no more are counted. */
const AT_LEAST_FROM = 1_900;
const HEAT = "var(--accent)";

type Scale = (ms: number) => number;

/** The kinds of lines that mark rebalances, with their meaning, in the order of the legend, and the causes that they are for. */
export const CAUSE_LINES: Record<string, { meaning: string; causes: string[] }> = {
  lost: { meaning: "somebody left or timed out", causes: ["group_emptied", "members_left", "members_joined_and_left"] },
  step: { meaning: "second step of a cooperative rebalance", causes: ["cooperative_second_step"] },
  came: { meaning: "somebody joined", causes: ["group_started", "group_refilled", "members_joined"] },
  gone: { meaning: "nobody is in the group", causes: ["empty_join"] },
  vote: { meaning: "the assignor changed", causes: ["assignor_changed"] },
  kind: { meaning: "the group became one of the other protocol", causes: ["became_consumer", "became_classic"] },
  else: { meaning: "something else", causes: [] },
};

export function causeLine(causeKind: string): string {
  return Object.entries(CAUSE_LINES).find(([, { causes }]) => causes.includes(causeKind))?.[0] ?? "else";
}

/** Member id → its colour, the same everywhere in a group. */
export function memberColours(members: MemberTimeline[]): Map<string, string> {
  return new Map(members.map(({ member }, place) => [member, `var(--m${place % HUES})`]));
}

/** Of members that are not drawn. */
export const OTHERS = "var(--line-2)";

/** Rebalances and commits of all groups over time. */
export function ActivityChart({ overview }: { overview: Overview }) {
  const { activity } = overview;
  if (!activity) return null;
  const { bins, rebalances, commits } = activity;
  const endMs = bins.start_ts + bins.width_ms * bins.pieces;
  const scale = timeScale(bins.start_ts, endMs);
  const rows = [barsRow(rebalances, bins, scale, "rebalances", "var(--m1)"), barsRow(commits.counts, commits.bins, scale, "commits", "var(--m0)")];
  return (
    <Chart title="Rebalances and commits of all groups" startMs={bins.start_ts} endMs={endMs} rows={rows} rowHeight={TALL}>
      <p class="quiet">
        The highest bars are {amount(Math.max(...rebalances), "rebalances")} in {duration(bins.width_ms)} and {amount(Math.max(...commits.counts), "commits")} in {duration(commits.bins.width_ms)}.
      </p>
    </Chart>
  );
}

/** What happened to one group: commits by darkness, members as bars, rebalances as lines, storms as shades. */
export function TimelineChart({ detail }: { detail: GroupDetail }) {
  const { commits, epochs, members, storms } = detail;
  const scale = timeScale(detail.start_ts, detail.end_ts);
  const colours = memberColours(members);
  const rows: Row[] = [
    ...(commits ? [histogramRow(commits, scale)] : []),
    ...(epochs.length ? [reconciliationRow(epochs, detail.end_ts, scale)] : []),
    ...members.map((each) => memberRow(each, detail.end_ts, scale, colours.get(each.member)!)),
  ];
  if (!rows.length) rows.push({ label: "rebalances", shapes: [] });
  const shades = storms.map(({ from_ts, to_ts, rebalances }) => ({
    title: `a storm: ${number(rebalances)} rebalances in a row`,
    path: box(scale(from_ts), Math.max(scale(to_ts), scale(from_ts) + 1), 0, ROW_HEIGHT * rows.length),
    fill: "var(--storm)",
  }));
  const lines = linesOf(detail, scale);
  const seen = new Set(lines.map(({ kind }) => kind));
  return (
    <Chart title="Members, rebalances and commits" startMs={detail.start_ts} endMs={detail.end_ts} rows={rows} shades={shades} lines={lines}>
      {(seen.size > 0 || storms.length > 0) && (
        <ul class="legend">
          {Object.entries(CAUSE_LINES).filter(([kind]) => seen.has(kind)).map(([kind, { meaning }]) => (
            <li key={kind}><svg width="24" height="14" aria-hidden="true"><line x1="0" x2="24" y1="7" y2="7" class={`line-${kind}`} /></svg> {meaning}</li>
          ))}
          {storms.length > 0 && <li><svg width="24" height="14" aria-hidden="true"><rect width="24" height="14" fill="var(--storm)" /></svg> storm</li>}
        </ul>
      )}
      {epochs.length > 0 && (
        <p class="quiet">
          “reconciling” is thin until there is a target assignment for an epoch, then thick until every member has its part. A member is pale while it does not have what it is to have, or is away.
        </p>
      )}
      <LeftOut count={detail.members_left_out} what="members that were in it earlier" table="members" isAtLeast={detail.members_left_out >= AT_LEAST_FROM} />
      <LeftOut count={detail.rebalances_left_out} what="rebalances that were earlier" table="rebalances" />
      {!members.length && <p class="quiet">No member is known, or what members were given cannot be read.</p>}
    </Chart>
  );
}

/** Each partition in the colour of its owner. */
export function OwnershipChart({ detail }: { detail: GroupDetail }) {
  if (!detail.partitions.length) return null;
  const scale = timeScale(detail.start_ts, detail.end_ts);
  const colours = memberColours(detail.members);
  const clients = new Map(detail.members.map(({ member, client_id }) => [member, client_id]));
  const rows = detail.partitions.map(({ topic, partition, spans }): Row => {
    const place = `${topic}-${partition}`;
    const shapes = new Map<string, Shape>();
    for (const { from_ts, until_ts, member, is_revoking } of spans) {
      const owner = member === null ? "nobody" : shortened(clients.get(member) || member);
      const shape = found(shapes, `${is_revoking} ${member}`, {
        title: `${shortened(place)}: ${owner}${is_revoking ? ", which is to give it back" : ""}`,
        path: "",
        fill: member === null ? "var(--ink-2)" : (colours.get(member) ?? OTHERS),
      });
      shape.path += segment(scale, from_ts, until_ts, member === null ? 2 : is_revoking ? 6 : ROW_HEIGHT - 4);
    }
    return { label: shortened(topic), suffix: `-${partition}`, title: place, shapes: [...shapes.values()] };
  });
  return (
    <Chart title="Owner of each partition" startMs={detail.start_ts} endMs={detail.end_ts} rows={rows} lines={linesOf(detail, scale, "thin")}>
      <p class="quiet">Colours are those of the members above.{detail.epochs.length > 0 && " A narrow bar: its owner was told to give it back, and has not yet."}</p>
      {detail.owned_from_ts !== null && <p class="quiet">Owners before {moment(detail.owned_from_ts)} UTC are not drawn: table <code>ownership</code></p>}
      <LeftOut count={detail.partitions_left_out} what="partitions, that changed hands less often" table="ownership" isAtLeast={detail.partitions_left_out >= AT_LEAST_FROM} />
    </Chart>
  );
}

/** A line for each rebalance. */
function linesOf({ rebalances }: GroupDetail, scale: Scale, kind?: string): Line[] {
  return rebalances.map((each) => ({ x: scale(each.at_ts), kind: kind ?? causeLine(each.cause_kind), title: rebalanceText(each) }));
}

function rebalanceText(one: Rebalance): string {
  const members = `${number(one.members_before)} → ${amount(one.members_after, "members")}`;
  const needless = one.moved_needlessly ? `, ${number(one.moved_needlessly)} needlessly` : "";
  const moved = one.moved === null ? "" : `; ${number(one.moved)} of ${amount(one.partitions_total, "partitions")} moved${needless}`;
  return `${one.kind === "classic" ? "generation" : "epoch"} ${one.generation}, ${moment(one.at_ts, true)} UTC: ${shortened(one.likely_cause, 300)}; ${members}${moved}`;
}

/** How long each epoch took: thin until there was a target assignment, then thick until all members had theirs. */
function reconciliationRow(epochs: Epoch[], endMs: number, scale: Scale): Row {
  const shapes: Shape[] = [];
  epochs.forEach((one, place) => {
    if (one.group_epoch === null || !one.members) return;
    const nextMs = epochs[place + 1]?.at_ts ?? endMs;
    const assignedMs = one.assigned_ts ?? nextMs;
    const untilMs = one.reconciled_ts ?? nextMs;
    if (assignedMs > one.at_ts)
      shapes.push({ fill: HEAT, title: `epoch ${one.group_epoch}: waits for a target assignment`, path: segment(scale, one.at_ts, assignedMs, 3) });
    if (untilMs > assignedMs) {
      const last = one.reconciled_ts !== null ? "all have their target" : "the next epoch came before all had it";
      const title = `epoch ${one.group_epoch}: members change over for ${number(untilMs - assignedMs)} ms, then ${last}`;
      shapes.push({ fill: HEAT, title, path: segment(scale, assignedMs, untilMs, ROW_HEIGHT - 5) });
    }
  });
  return { label: "reconciling", shapes };
}

function memberRow({ member, client_id, spans }: MemberTimeline, endMs: number, scale: Scale, fill: string): Row {
  const had = spans.map(({ partitions }) => partitions);
  const [least, most] = [Math.min(...had), Math.max(...had)];
  const untilMs = spans.at(-1)!.until_ts;
  const until = untilMs >= endMs ? "on, not seen leaving" : `to ${moment(untilMs)} UTC`;
  const name = shortened(client_id || member);
  const title = `${name}: from ${moment(spans[0]!.from_ts)} UTC ${until}, ${least === most ? "" : `${number(least)} to `}${amount(most, "partitions")}`;
  const shapes = new Map<string, Shape>();
  for (const { from_ts, until_ts, partitions, is_settled } of spans) {
    const pale = { fill, path: "", opacity: 0.4, title: `${title}; here away, or not yet with what it is to have` };
    found(shapes, String(is_settled), is_settled ? { fill, path: "", title } : pale).path += segment(scale, from_ts, until_ts, partitions ? ROW_HEIGHT - 5 : 3);
  }
  return { label: name, title: member, shapes: [...shapes.values()] };
}

function found(shapes: Map<string, Shape>, key: string, otherwise: Shape): Shape {
  const shape = shapes.get(key) ?? otherwise;
  shapes.set(key, shape);
  return shape;
}

/** A span of time in the middle of a row. */
function segment(scale: Scale, fromMs: number, untilMs: number, height: number): string {
  return box(scale(fromMs), scale(untilMs), (ROW_HEIGHT - height) / 2, height);
}

/** Commits as rectangles that are darker the more commits there are. */
function histogramRow({ counts, bins }: CommitHistogram, scale: Scale): Row {
  const highest = Math.max(0, ...counts);
  const shapes = counted(counts, bins)
    .filter(({ fromMs, untilMs }) => scale(untilMs) > scale(fromMs))
    .map(({ fromMs, untilMs, count }) => ({
      title: countText(count, "commits", fromMs),
      path: segment(scale, fromMs, untilMs, ROW_HEIGHT - 4),
      fill: HEAT,
      opacity: Math.round(100 * (0.15 + 0.85 * Math.sqrt(count / highest))) / 100,
    }));
  return { label: "commits", shapes };
}

function barsRow(counts: number[], bins: Bins, scale: Scale, unit: string, fill: string): Row {
  const highest = Math.max(0, ...counts);
  const shapes = counted(counts, bins).map(({ fromMs, untilMs, count }) => {
    const tall = Math.max(1, (count / highest) * (TALL - 4));
    return { title: countText(count, unit, fromMs), path: box(scale(fromMs), scale(untilMs), TALL - tall, tall), fill };
  });
  return { label: unit, shapes };
}

/** The bins that are not empty. */
function counted(counts: number[], { start_ts, width_ms }: Bins): { fromMs: number; untilMs: number; count: number }[] {
  return counts.map((count, place) => ({ fromMs: start_ts + place * width_ms, untilMs: start_ts + (place + 1) * width_ms, count })).filter(({ count }) => count > 0);
}

function countText(count: number, unit: string, fromMs: number): string {
  return `${amount(count, unit)} from ${moment(fromMs, true)} UTC on`;
}
