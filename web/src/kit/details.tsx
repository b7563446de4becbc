/** What was chosen: what happened, why, what followed, and the bytes of a request or a response. */
import { useEffect, useState } from "preact/hooks";
import type { Dissection, Entry } from "../data.ts";
import { Bytes } from "./bytes.tsx";
import { Panel } from "./panel.tsx";
import type { View } from "./view.ts";

const FOLLOWERS = 12;

export function Details({ view }: { view: View }) {
  const { history, selected } = view;
  const entry = history.entry(selected) ?? lastBeginning(view);
  if (!entry) {
    return (
      <Panel title="Why" class="details">
        <p class="quiet">Choose anything that happened: here it says why, what followed from it, and which bytes were sent.</p>
      </Panel>
    );
  }
  const answer = history.entry(history.answerTo(entry.seq));
  const request = history.entry(entry.answers);
  const followers = history.consequences(entry.seq);
  return (
    <Panel
      title="Why"
      class={`details${selected === null ? "" : " chosen"}`}
      aside={<><span class="mono">#{entry.seq}</span> {selected !== null && <button type="button" onClick={() => view.select(null)}>Close</button>}</>}
    >
      <div aria-live="polite">
        <p class="happened"><b>{history.names.shortened(entry.text)}</b></p>
        <p class="quiet">{history.moment(entry.at_ms)} on the clock of the server · <span class="mono">{entry.event.replace(/^[a-z]+\./, "")}</span></p>
        <Reason view={view} entry={entry} />
        <Chain view={view} entry={entry} />
        {request && <p>Response to <Link view={view} entry={request} /></p>}
        {answer && <p>Response: <Link view={view} entry={answer} /></p>}
        {entry.event === "trace.RequestReceived" && !answer && <p class="quiet">No response yet.</p>}
        {followers.length > 0 && (
          <details>
            <summary>What followed from it ({followers.length})</summary>
            <ul class="links">
              {followers.slice(0, FOLLOWERS).map((seq) => {
                const each = history.entry(seq);
                return each && <li key={seq}><Link view={view} entry={each} /></li>;
              })}
              {followers.length > FOLLOWERS && <li class="quiet">and {followers.length - FOLLOWERS} more</li>}
            </ul>
          </details>
        )}
        <Fields entry={entry} view={view} />
        {"frame" in entry.fields && <Frame view={view} entry={entry} />}
      </div>
    </Panel>
  );
}

/** What is explained while nothing was chosen: the newest generation or epoch of the group that is shown. */
function lastBeginning(view: View): Entry | null {
  const newest = view.history.timelines.of(view.group, view.state.seq).at(-1);
  return newest ? view.history.entry(newest.seq) : null;
}

function Link({ view, entry }: { view: View; entry: Entry }) {
  return (
    <button type="button" class="link" onClick={() => view.select(entry.seq)}>
      {view.history.names.shortened(entry.text)} <small class="mono">#{entry.seq}</small>
    </button>
  );
}

/** The chain of causes, the first one first. */
function Chain({ view, entry }: { view: View; entry: Entry }) {
  const causes = view.history.causes(entry.seq);
  if (!causes.length) return <p class="quiet">{entry.caused_by === null ? "It came from outside: nothing in the trace led to it." : "What led to it was dropped from the trace."}</p>;
  return (
    <>
      <h3>Because</h3>
      <ol class="links chain">{causes.map((each) => <li key={each.seq}><Link view={view} entry={each} /></li>)}</ol>
    </>
  );
}

const BEGINNINGS: Record<string, { field: string; isEpoch: boolean }> = {
  "coordinator.GenerationStarted": { field: "generation", isEpoch: false },
  "coordinator.RebalanceStuck": { field: "generation", isEpoch: false },
  "coordinator.StateChanged": { field: "generation", isEpoch: false },
  "coordinator.AssignmentReceived": { field: "generation", isEpoch: false },
  "coordinator.GroupEpochBumped": { field: "epoch", isEpoch: true },
  "coordinator.TargetAssignmentComputed": { field: "epoch", isEpoch: true },
};

/** Why a generation or an epoch began, as Python says it. */
function Reason({ view, entry }: { view: View; entry: Entry }) {
  const [text, setText] = useState("");
  const beginning = BEGINNINGS[entry.event];
  useEffect(() => {
    setText("");
    if (!beginning) return;
    let wanted = true;
    view.source
      .why(String(entry.fields.group), Number(entry.fields[beginning.field]), beginning.isEpoch)
      .then((told) => wanted && setText(told))
      .catch(() => wanted && setText(""));
    return () => {
      wanted = false;
    };
  }, [entry.seq, view.source]);
  return text ? <p class="reason">{text}</p> : null;
}

/** What an entry knows beside its text. */
function Fields({ entry, view }: { entry: Entry; view: View }) {
  const fields = Object.entries(entry.fields).filter(([name, value]) => name !== "frame" && value !== "" && value !== null);
  if (!fields.length) return null;
  return (
    <details>
      <summary>Fields ({fields.length})</summary>
      <table class="fields">
        <tbody>{fields.map(([name, value]) => <tr key={name}><th scope="row" class="mono">{name}</th><td class="mono">{view.history.names.shortened(said(value))}</td></tr>)}</tbody>
      </table>
    </details>
  );
}

function said(value: unknown): string {
  return typeof value === "string" ? value : JSON.stringify(value, null, 1).replace(/\n\s*/g, " ");
}

function Frame({ view, entry }: { view: View; entry: Entry }) {
  const [found, setFound] = useState<Dissection | null | "asked">("asked");
  const frame = entry.fields.frame as string | null;
  useEffect(() => {
    setFound("asked");
    if (!frame) return;
    let wanted = true;
    view.source
      .bytes(entry.seq)
      .then((dissection) => wanted && setFound(dissection))
      .catch(() => wanted && setFound(null));
    return () => {
      wanted = false;
    };
  }, [entry.seq, view.source]);
  if (!frame) return <p class="quiet">The trace does not have its bytes: it is longer than 16,384 bytes, or the trace was made without detailed_trace=True.</p>;
  return <Bytes frame={frame} dissection={found === "asked" ? null : found} />;
}
