/** Every request and answer as an arrow between a client and the broker, with what happened in between. */
import { useEffect, useMemo, useState } from "preact/hooks";
import { firstPlace } from "./model/history.ts";
import { rowsOf, type Row } from "./model/folding.ts";
import { Panel } from "./panel.tsx";
import type { View } from "./view.ts";
import { VirtualList } from "./virtual.tsx";

/** So many clients have a lane of their own; the others share the last one. */
const LANES = 7;
const OTHERS = "other clients";

export function Sequence({ view, allGroups }: { view: View; allGroups: boolean }) {
  const [all, setAll] = useState(allGroups);
  useEffect(() => setAll(allGroups), [allGroups]);
  const [folds, setFolds] = useState(true);
  const { history } = view;
  const rows = useMemo(() => rowsOf(history, all || !view.group ? null : view.group, folds), [history.version, all, folds, view.group]);
  const count = view.state.seq === history.entries.at(-1)?.seq ? rows.length : firstPlace(rows, (row) => row.seq > view.state.seq);
  const lanes = useMemo(() => lanesOf(rows), [rows]);
  const chosen = view.selected === null ? -1 : placeOf(rows, count, view.selected);
  return (
    <Panel
      title="Requests, responses and state changes"
      class="sequence"
      aside={
        <span class="buttons">
          <label><input type="checkbox" checked={folds} onChange={() => setFolds(!folds)} /> fold what changed nothing</label>
          {view.group && <label><input type="checkbox" checked={all} onChange={() => setAll(!all)} /> all groups</label>}
        </span>
      }
    >
      <VirtualList
        label="Sequence diagram"
        count={count}
        rowHeight={26}
        chosen={chosen}
        choose={(place) => view.select(rows[place]!.seq)}
        followsEnd
        empty="Nothing has been asked yet."
        head={<Heads lanes={lanes} />}
        rowClass={(place) => rowClass(rows[place]!)}
        row={(place) => <Line view={view} row={rows[place]!} before={rows[place - 1]} lanes={lanes} />}
      />
    </Panel>
  );
}

function placeOf(rows: Row[], count: number, seq: number): number {
  const place = firstPlace(rows, (row) => row.seq > seq) - 1;
  const row = rows[place];
  if (!row || place >= count) return -1;
  return row.seq === seq || (row.kind === "quiet" && row.entries.includes(seq)) ? place : -1;
}

function lanesOf(rows: Row[]): string[] {
  const lanes = [...new Set(rows.map((row) => row.lane).filter((lane) => lane))];
  return lanes.length > LANES ? [...lanes.slice(0, LANES - 1), OTHERS] : lanes;
}

/** Where a lane is, in percent of the width; the broker is at the right. */
function xOf(lanes: string[], lane: string): number {
  const place = lanes.indexOf(lane);
  return (100 * ((place < 0 ? lanes.length - 1 : place) + 0.5)) / (lanes.length + 1);
}

function brokerX(lanes: string[]): number {
  return (100 * (lanes.length + 0.5)) / (lanes.length + 1);
}

function Heads({ lanes }: { lanes: string[] }) {
  return (
    <div class="heads">
      <span class="time" />
      <span class="lanes">
        {lanes.map((lane) => <b key={lane} style={{ left: `${xOf(lanes, lane)}%` }}>{lane}</b>)}
        <b style={{ left: `${brokerX(lanes)}%` }}>broker</b>
      </span>
    </div>
  );
}

function Line({ view, row, before, lanes }: { view: View; row: Row; before: Row | undefined; lanes: string[] }) {
  const broker = brokerX(lanes);
  const client = row.lane ? xOf(lanes, row.lane) : broker;
  const time = before?.atMs === row.atMs ? "" : view.history.moment(row.atMs);
  const text = textOf(view, row);
  return (
    <>
      <span class="time">{time}</span>
      <span class="lanes">
        <svg aria-hidden="true" width="100%" height="26">
          {lanes.map((lane) => <line key={lane} class="life" x1={`${xOf(lanes, lane)}%`} x2={`${xOf(lanes, lane)}%`} y1="0" y2="26" />)}
          <line class="life" x1={`${broker}%`} x2={`${broker}%`} y1="0" y2="26" />
          {row.kind !== "event" && <line class={`arrow ${row.kind}`} x1={`${client}%`} x2={`${broker}%`} y1="20" y2="20" />}
        </svg>
        {(row.kind === "request" || row.kind === "quiet") && <i class="tip right" style={{ left: `${broker}%` }} />}
        {row.kind === "answer" && <i class="tip left" style={{ left: `${client}%` }} />}
        {row.kind === "dropped" && <i class="cross" style={{ left: `${(client + broker) / 2}%` }}>✕</i>}
        {row.kind === "event" ? (
          <span class="note">{text}</span>
        ) : (
          <span class={`label${broker - client > 40 ? " long" : ""}`} style={broker - client > 40 ? { left: `${client}%`, width: `${broker - client}%` } : { width: `${broker}%` }}><span><span class="visually-hidden">{SAYS[row.kind]?.(row.lane)}</span>{text}</span></span>
        )}
      </span>
    </>
  );
}

function rowClass(row: Row): string {
  if (row.kind === "answer" && row.entry.fields.error !== "NONE") return "answer failed";
  if (row.kind === "event" && row.entry.event.startsWith("client.")) return "event client";
  if (row.kind === "event" && row.entry.event === "coordinator.RebalanceStarted") return "event rebalance";
  return row.kind;
}

function textOf(view: View, row: Row): string {
  if (row.kind === "quiet") return row.words;
  const fields = row.entry.fields as Record<string, any>;
  switch (row.kind) {
    case "request":
      return `${fields.api}${number(fields)}`;
    case "answer": {
      const assigned = Array.isArray(fields.details.assignment) ? `: ${fields.details.assignment.join(", ") || "nothing"}` : "";
      return `${fields.api} ${fields.error === "NONE" ? "✓" : `✕ ${fields.error}`}${fields.took_ms ? ` after ${fields.took_ms} ms` : ""}${assigned}`;
    }
    case "dropped":
      return `${fields.api}: ${fields.reason}`;
    default:
      return view.history.names.shortened(row.entry.text);
  }
}

function number(fields: Record<string, any>): string {
  if (fields.api === "ConsumerGroupHeartbeat") return ` ${EPOCH_WORDS[fields.generation] ?? `epoch ${fields.generation}`}`;
  return fields.generation >= 0 ? ` generation ${fields.generation}` : "";
}

const EPOCH_WORDS: Record<string, string> = { "0": "to join", "-1": "to leave", "-2": "to leave for now" };

/** What the arrow says to who does not see it. */
const SAYS: Partial<Record<Row["kind"], (lane: string) => string>> = {
  request: (lane) => `${lane} asks `,
  answer: (lane) => `${lane} is answered `,
  dropped: (lane) => `${lane} gets no answer to `,
};
