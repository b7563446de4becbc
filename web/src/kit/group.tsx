/** The group that is shown: what just happened and why, its state machine, who is in it and who owns what. */
import { Term } from "./glossary.tsx";
import type { Entry } from "../data.ts";
import type { Group, Member } from "./model/state.ts";
import { Panel } from "./panel.tsx";
import { StateMachine } from "./states.tsx";
import { byNumber, Dot } from "./timeline.tsx";
import { counted, duration, type View } from "./view.ts";

/** What a person wants to know of first; all else is in the sequence. */
export const NEWS = new Set(
  [
    "MemberJoined", "ConsumerMemberJoined", "MemberRemoved", "StaticMemberReplaced", "StaticMemberAway", "RebalanceStarted",
    "RebalanceStuck", "GenerationStarted", "AssignmentReceived", "GroupEpochBumped", "TargetAssignmentComputed",
    "GroupMigrated", "GroupRemoved", "SubscriptionChanged", "LeaderElected", "OffsetsRemoved", "MemberReconciled",
  ].map((name) => `coordinator.${name}`),
);

const SHOWN = 5;

/** The last news of a group before the moment that is shown, the newest first. */
function newsOf(view: View, count: number): Entry[] {
  const found: Entry[] = [];
  const { entries } = view.history;
  for (let place = view.count - 1; place >= 0 && found.length < count; place -= 1) {
    const entry = entries[place]!;
    if (NEWS.has(entry.event) && entry.fields.group === view.group) found.push(entry);
  }
  return found;
}

export function GroupPanel({ view }: { view: View }) {
  const group = view.state.groups.get(view.group);
  if (!group) return <Panel title="Groups"><p class="quiet">There is no <Term id="group" /> yet.</p></Panel>;
  const before = stateBefore(view);
  const isConsumer = group.type === "consumer";
  return (
    <Panel
      class="group"
      title={<>Group <span class="mono">{group.name}</span></>}
      aside={<StateBadge group={group} />}
    >
      <p class="facts">
        {KIND[group.type]} · <Term id={isConsumer ? "epoch" : "generation"}>{isConsumer ? "epoch" : "generation"}</Term> <b>{group.number}</b>
        {group.assignor && <> · <Term id="assignor" /> <b>{group.assignor}</b></>}
        {group.leader && group.members.has(group.leader) && !isConsumer && <> · <Term id="leader" /> <b>{view.history.names.of(group.leader)}</b></>}
        {" "}· {counted(group.members.size, "member")}
      </p>
      {group.type !== "simple" && <div class="scroll" role="group" aria-label="State machine" tabIndex={0}><StateMachine group={group} before={before} /></div>}
      <div class="group-body">
        <div>
          <h3>Who is in it, and owns what</h3>
          <Members view={view} group={group} />
        </div>
        <div>
          <h3>What just happened</h3>
          <News view={view} />
        </div>
      </div>
    </Panel>
  );
}

const KIND: Record<Group["type"], string> = {
  classic: "classic protocol",
  consumer: "consumer protocol (KIP-848)",
  simple: "holds offsets only",
};

export function StateBadge({ group }: { group: Group }) {
  const kind = group.state === "Stable" ? "good" : group.state === "Empty" || group.state === "Dead" ? "" : "warn";
  const sign = kind === "good" ? "✓" : kind === "warn" ? "↻" : "○";
  return <span class={`badge ${kind}`}>{sign} {group.state}</span>;
}

function News({ view }: { view: View }) {
  const news = newsOf(view, SHOWN);
  if (!news.length) return <p class="quiet">Nothing yet.</p>;
  return (
    <ol class="news">
      {news.map((entry) => {
        const causes = view.history.causes(entry.seq);
        const root = causes[0];
        return (
          <li key={entry.seq}>
            <button type="button" class={`link${view.selected === entry.seq ? " chosen" : ""}`} onClick={() => view.select(entry.seq)}>
              <span class="time">{view.history.moment(entry.at_ms)}</span>
              <span>
                {view.history.names.shortened(entry.text)}
                {root && <small>because {causeText(view, root)}</small>}
              </span>
            </button>
          </li>
        );
      })}
    </ol>
  );
}

/** What led to something, as the end of a sentence. */
function causeText(view: View, root: Entry): string {
  const fields = root.fields as Record<string, any>;
  const names = view.history.names;
  switch (root.event) {
    case "trace.RequestReceived":
      return `of ${fields.api} from ${fields.client_id ?? "a client"}`;
    case "trace.AdminActionRun":
      return `of an action: ${names.shortened(String(fields.action))}`;
    default:
      return names.shortened(root.text);
  }
}

function stateBefore(view: View): string {
  const { entries } = view.history;
  for (let place = view.count - 1; place >= 0; place -= 1) {
    const entry = entries[place]!;
    if (entry.event === "coordinator.StateChanged" && entry.fields.group === view.group) return String(entry.fields.origin);
    if (view.count - place > 20_000) break;
  }
  return "";
}

function Members({ view, group }: { view: View; group: Group }) {
  const { history, state } = view;
  const members = [...group.members.values()];
  if (!members.length && !group.pending.size) return <p class="quiet">Nobody is in the group.</p>;
  return (
    <div class="scroll">
      <table class="members">
        <caption class="visually-hidden">Members and what they own</caption>
        <thead>
          <tr>
            <th scope="col"><Term id="member">Member</Term></th>
            <th scope="col">Owns</th>
            <th scope="col">Heard</th>
          </tr>
        </thead>
        <tbody>
          {members.map((member) => (
            <tr key={member.id}>
              <th scope="row">
                <button type="button" class="link" title={member.id} onClick={() => view.select(member.joinedSeq)}>
                  <Dot view={view} member={member.id} /> {history.names.of(member.id)}
                </button>
                <Signs member={member} group={group} />
              </th>
              <td><Owned view={view} group={group} member={member} /></td>
              <td class="number"><button type="button" class="link" onClick={() => view.select(member.heardSeq)}>{duration(state.atMs - member.heardMs)} ago</button></td>
            </tr>
          ))}
          {[...group.pending].map(([id, since]) => (
            <tr key={id} class="quiet">
              <th scope="row"><button type="button" class="link" onClick={() => view.select(since.seq)}>{history.names.of(id)}</button> <small>has its id, and has not joined with it</small></th>
              <td>–</td><td />
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function Signs({ member, group }: { member: Member; group: Group }) {
  const signs: { text: string; term?: string }[] = [];
  if (group.leader === member.id && group.type === "classic") signs.push({ text: "★ leader", term: "leader" });
  if (member.instanceId !== null) signs.push({ text: "static", term: "static member" });
  if (group.type === "consumer") {
    signs.push({ text: `epoch ${member.epoch}`, term: "epoch" });
    if (member.protocol === "classic") signs.push({ text: "classic protocol" });
    if (member.state === "UNRELEASED_PARTITIONS") signs.push({ text: "waits for partitions of others" });
  }
  if (member.waits) signs.push({ text: "waits for the others" });
  if (member.away) signs.push({ text: "away" });
  return <>{signs.map(({ text, term }) => <small key={text} class="sign">{term ? <Term id={term}>{text}</Term> : text}</small>)}</>;
}

function Owned({ view, group, member }: { view: View; group: Group; member: Member }) {
  const owned = [...group.owners].filter(([, owner]) => owner === member.id).map(([partition]) => partition).sort(byNumber);
  const coming = [...group.target].filter(([partition, owner]) => owner === member.id && group.owners.get(partition) !== member.id);
  if (!owned.length && !coming.length) return <span class="quiet">nothing</span>;
  const hue = { "--hue": `var(--m${view.history.hue(member.id)})` };
  return (
    <span class="chips" style={hue}>
      {owned.slice(0, 40).map((partition) => (
        <span key={partition} class={`chip${member.revoking.includes(partition) ? " going" : ""}`}>
          {partition}{member.revoking.includes(partition) && <small> to give back</small>}
        </span>
      ))}
      {owned.length > 40 && <span class="quiet">and {owned.length - 40} more</span>}
      {coming.map(([partition]) => <span key={partition} class="chip coming">{partition}<small> to come</small></span>)}
    </span>
  );
}
