/** Topics with their offsets and lag, brokers, and what is due when. */
import { scaleLinear } from "d3-scale";
import { useState } from "preact/hooks";
import { Term } from "./glossary.tsx";
import { deadlines, WHAT } from "./model/deadlines.ts";
import { isInternal, type Group } from "./model/state.ts";
import { Panel } from "./panel.tsx";
import { Dot } from "./timeline.tsx";
import { counted, duration, type View } from "./view.ts";

const ROWS = 12;

export function Topics({ view }: { view: View }) {
  const group = view.state.groups.get(view.group);
  const [wide, setWide] = useState(false);
  const rows = rowsOf(view, group);
  const shown = wide ? rows : rows.slice(0, ROWS);
  const total = rows.reduce((sum, row) => sum + (row.lag ?? 0), 0);
  const known = view.state.topics.size > 0;
  return (
    <Panel title="Topics, offsets and lag" class="topics" aside={group && known && <span>lag in all <b>{total.toLocaleString("en")}</b></span>}>
      {rows.length === 0 ? (
        <p class="quiet">{known ? "There is no topic." : "The trace names no topics."}</p>
      ) : (
        <table>
          <thead>
            <tr>
              <th scope="col"><Term id="partition">Partition</Term></th>
              <th scope="col">Owner</th>
              <th scope="col" class="number"><Term id="committed offset">Committed</Term></th>
              <th scope="col" class="number"><Term id="high watermark">End</Term></th>
              <th scope="col" class="number"><Term id="lag">Lag</Term></th>
            </tr>
          </thead>
          <tbody>
            {shown.map((row) => (
              <tr key={row.partition}>
                <th scope="row">{row.partition}{row.leader !== null && view.state.brokers.length > 1 && <small class="quiet"> {row.leader < 0 ? " no leader" : ` on broker ${row.leader}`}</small>}</th>
                <td>{row.owner ? <><Dot view={view} member={row.owner} /> {view.history.names.of(row.owner)}</> : <span class="quiet">–</span>}</td>
                <td class="number">{row.committed === null ? "–" : <button type="button" class="link" onClick={() => view.select(row.committedSeq)}>{row.committed}</button>}</td>
                <td class="number">{row.end ?? "?"}</td>
                <td class="number">{row.lag === null ? "–" : <Lag lag={row.lag} most={Math.max(...rows.map((each) => each.lag ?? 0))} />}</td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
      {rows.length > ROWS && <button type="button" class="link" onClick={() => setWide(!wide)}>{wide ? "Show fewer" : `Show all ${counted(rows.length, "partition")}`}</button>}
    </Panel>
  );
}

function Lag({ lag, most }: { lag: number; most: number }) {
  return <>{lag} <span class="meter" aria-hidden="true"><i style={{ width: `${most ? (100 * lag) / most : 0}%` }} /></span></>;
}

interface TopicRow {
  partition: string;
  leader: number | null;
  owner: string | undefined;
  committed: number | null;
  committedSeq: number;
  end: number | null;
  lag: number | null;
}

/** The partitions of the group first: those that it owns, or has offsets of; then all others. */
function rowsOf(view: View, group: Group | undefined): TopicRow[] {
  const names = new Map<string, { leader: number; end: number } | null>();
  for (const name of [...(group?.owners.keys() ?? []), ...(group?.committed.keys() ?? [])].sort((one, other) => one.localeCompare(other, "en", { numeric: true }))) {
    const cut = name.lastIndexOf("-");
    names.set(name, view.state.topics.get(name.slice(0, cut))?.[Number(name.slice(cut + 1))] ?? null);
  }
  for (const [topic, partitions] of view.state.topics) {
    if (isInternal(topic)) continue;
    partitions.forEach((partition, place) => names.has(`${topic}-${place}`) || names.set(`${topic}-${place}`, partition));
  }
  return [...names].map(([partition, there]) => {
    const committed = group?.committed.get(partition);
    return {
      partition,
      leader: there?.leader ?? null,
      owner: group?.owners.get(partition),
      committed: committed?.offset ?? null,
      committedSeq: committed?.seq ?? 0,
      end: there?.end ?? null,
      lag: committed && there ? there.end - committed.offset : null,
    };
  });
}

export function Deadlines({ view }: { view: View }) {
  const pending = deadlines(view.state);
  const shown = pending.slice(0, ROWS);
  return (
    <Panel title="Pending timers" class="deadlines" aside={pending.length > ROWS && <span>{pending.length - ROWS} more later</span>}>
      {pending.length === 0 && <p class="quiet">No timer is pending.</p>}
      <ul>
        {shown.map((due) => {
          const left = due.dueMs - view.state.atMs;
          const width = scaleLinear([due.sinceMs, due.dueMs], [100, 0]).clamp(true)(view.state.atMs);
          const who = due.member ? view.history.names.of(due.member) : due.group;
          return (
            <li key={`${due.kind} ${due.group} ${due.member}`}>
              <button type="button" class="link" onClick={() => view.select(due.seq)}>
                <b>{who}</b> {NAMES[due.kind]} <span class="mono">{left >= 0 ? `${duration(left)} left` : `${duration(-left)} overdue`}</span>
                <small>of {duration(due.dueMs - due.sinceMs)}, due at {view.history.moment(due.dueMs)}: {WHAT[due.kind]}</small>
              </button>
              <span class="meter" aria-hidden="true"><i class={width < 25 ? "late" : ""} style={{ width: `${width}%` }} /></span>
            </li>
          );
        })}
      </ul>
    </Panel>
  );
}

const NAMES = { session: "session", join: "waits for members to join", sync: "waits for SyncGroup", revoke: "gives partitions back" };

export function Brokers({ view }: { view: View }) {
  const { brokers, topics, connections } = view.state;
  if (!brokers.length) return null;
  return (
    <Panel title="Brokers" class="brokers" aside={<span>{counted(connections.size, "connection")}</span>}>
      <table>
        <thead><tr><th scope="col">Broker</th><th scope="col">Address</th><th scope="col">Leads</th></tr></thead>
        <tbody>
          {brokers.map((broker) => {
            let leads = 0;
            for (const [name, partitions] of topics) if (!isInternal(name)) leads += partitions.filter((each) => each.leader === broker.id).length;
            const groups = topics.get("__consumer_offsets")?.filter((each) => each.leader === broker.id).length ?? 0;
            return (
              <tr key={broker.id}>
                <th scope="row">{broker.id}{broker.rack && <small class="quiet"> rack {broker.rack}</small>}</th>
                <td class="mono">{broker.host}:{broker.port}</td>
                <td>{counted(leads, "partition")}, {groups} of <Term id="coordinator">__consumer_offsets</Term></td>
              </tr>
            );
          })}
        </tbody>
      </table>
    </Panel>
  );
}
