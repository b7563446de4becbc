/** A group over its generations or epochs, which are the columns: its members, and who owns which partition. */
import { useState } from "preact/hooks";
import { Term } from "./glossary.tsx";
import type { Column } from "./model/timelines.ts";
import type { Partition } from "./model/state.ts";
import { Panel } from "./panel.tsx";
import type { View } from "./view.ts";
import { counted } from "./view.ts";

/** So many columns are shown at once. */
const COLUMNS = 24;
const ROWS = 24;

export function Timeline({ view }: { view: View }) {
  const all = view.history.timelines.of(view.group, view.state.seq);
  const [back, setBack] = useState(0);
  const [wide, setWide] = useState(false);
  const end = Math.max(Math.min(all.length, COLUMNS), all.length - back);
  const columns = all.slice(Math.max(0, end - COLUMNS), end);
  if (!columns.length) {
    return <Panel title="Partition assignment over time"><p class="quiet">No <Term id="generation" /> and no <Term id="epoch" /> has begun yet.</p></Panel>;
  }
  const members = [...new Set(columns.flatMap((column) => column.members))];
  const partitions = [...new Set(columns.flatMap((column) => [...(column.owners?.keys() ?? [])]))].sort(byNumber);
  const shown = wide ? partitions : partitions.slice(0, ROWS);
  const earlier = all.length - columns.length;
  return (
    <Panel
      title="Partition assignment over time"
      class="timeline"
      aside={
        earlier > 0 && (
          <span class="buttons">
            <button type="button" aria-disabled={end <= COLUMNS} onClick={() => end > COLUMNS && setBack(back + COLUMNS)}>← Earlier</button>{" "}
            <button type="button" aria-disabled={back === 0} onClick={() => setBack(Math.max(0, back - COLUMNS))}>Later →</button>
          </span>
        )
      }
    >
      <div class="scroll">
        <table>
          <thead>
            <tr>
              <th scope="col"><Term id={columns.at(-1)!.isEpoch ? "epoch" : "generation"}>{columns.at(-1)!.isEpoch ? "Epoch" : "Generation"}</Term></th>
              {columns.map((column) => <Heading key={column.seq} view={view} column={column} />)}
            </tr>
          </thead>
          <tbody>
            <tr class="section"><th scope="rowgroup" colSpan={columns.length + 1}>Members</th></tr>
            {members.map((member) => <MemberRow key={member} view={view} member={member} columns={columns} />)}
            <tr class="section"><th scope="rowgroup" colSpan={columns.length + 1}>Partitions and their owners</th></tr>
            {shown.map((partition) => <PartitionRow key={partition} view={view} partition={partition} columns={columns} />)}
          </tbody>
        </table>
      </div>
      {partitions.length > ROWS && (
        <button type="button" class="link" onClick={() => setWide(!wide)}>
          {wide ? "Show fewer partitions" : `Show all ${counted(partitions.length, "partition")}`}
        </button>
      )}
    </Panel>
  );
}

function Heading({ view, column }: { view: View; column: Column }) {
  const { history, selected } = view;
  const what = `${column.isEpoch ? "Epoch" : "Generation"} ${column.number}`;
  const why = history.names.shortened(column.reason);
  return (
    <th scope="col" class={selected === column.seq ? "chosen" : ""}>
      <button type="button" class="heading" onClick={() => view.select(column.seq)} title={`${what}, ${history.moment(column.atMs)}: ${why}`}>
        <b><span class="visually-hidden">{column.isEpoch ? "Epoch" : "Generation"} </span>{column.number}</b>
        <small>{history.moment(column.atMs)}</small>
        <small class="why"><span class="visually-hidden">because </span>{why}</small>
      </button>
    </th>
  );
}

function MemberRow({ view, member, columns }: { view: View; member: string; columns: Column[] }) {
  const name = view.history.names.of(member);
  return (
    <tr>
      <th scope="row"><Dot view={view} member={member} /> {name}</th>
      {columns.map((column) => {
        if (!column.members.includes(member)) return <td key={column.seq} class="none"><span class="visually-hidden">not a member</span></td>;
        const owned = column.owners ? [...column.owners].filter(([, owner]) => owner === member).map(([partition]) => partition) : null;
        const leads = column.leader === member;
        const text = owned === null ? "…" : String(owned.length);
        const told = `${name}${leads ? ", the leader," : ""} in ${column.isEpoch ? "epoch" : "generation"} ${column.number}: ${owned === null ? "no assignment yet" : owned.join(", ") || "nothing"}`;
        return (
          <td key={column.seq} style={{ "--hue": `var(--m${view.history.hue(member)})` }} class="in">
            <button type="button" class="bar" title={told} onClick={() => view.select(column.ownersSeq || column.seq)}>
              {leads && <span aria-hidden="true" title="leader">★</span>}{text}<span class="visually-hidden"> of {told}</span>
            </button>
          </td>
        );
      })}
    </tr>
  );
}

function PartitionRow({ view, partition, columns }: { view: View; partition: Partition; columns: Column[] }) {
  const cells = [];
  for (let place = 0; place < columns.length; ) {
    const column = columns[place]!;
    const owner = column.owners?.get(partition);
    let end = place + 1;
    while (end < columns.length && columns[end]!.owners?.get(partition) === owner) end += 1;
    const span = end - place;
    if (owner === undefined) {
      cells.push(<td key={column.seq} colSpan={span} class="none">{column.owners ? <span class="quiet">nobody</span> : <span class="quiet">…</span>}</td>);
    } else {
      const name = view.history.names.of(owner);
      const kind = column.isEpoch ? "epoch" : "generation";
      const told = `${partition} is ${name}'s from ${kind} ${column.number}${span > 1 ? ` to ${columns[end - 1]!.number}` : ""}`;
      cells.push(
        <td key={column.seq} colSpan={span} class="in" style={{ "--hue": `var(--m${view.history.hue(owner)})` }}>
          <button type="button" class="bar" title={told} aria-label={told} onClick={() => view.select(column.ownersSeq)}>{name}</button>
        </td>,
      );
    }
    place = end;
  }
  return <tr><th scope="row">{partition}</th>{cells}</tr>;
}

/** The colour of a member, beside its name. */
export function Dot({ view, member }: { view: View; member: string }) {
  return <span class="dot" aria-hidden="true" style={{ background: `var(--m${view.history.hue(member)})` }} />;
}

export function byNumber(one: string, other: string): number {
  return one.localeCompare(other, "en", { numeric: true });
}
