/** Free play: time, new members, and what was done so far. */
import { useState } from "preact/hooks";
import { Panel } from "../kit/panel.tsx";
import { Term } from "../kit/glossary.tsx";
import type { Done } from "./data.ts";
import type { Mode, State, Store } from "./store.ts";
import { called } from "./words.tsx";

const KINDS: Record<string, Partial<Done>> = {
  "eager: range": { protocol: "classic", assignors: ["range"] },
  "eager: roundrobin": { protocol: "classic", assignors: ["roundrobin"] },
  "eager: sticky": { protocol: "classic", assignors: ["sticky"] },
  "cooperative: cooperative-sticky": { protocol: "classic", assignors: ["cooperative-sticky"] },
  "KIP-848: uniform": { protocol: "consumer", remote_assignor: "uniform" },
  "KIP-848: range": { protocol: "consumer", remote_assignor: "range" },
};

/** Adds a member, or several; each form of the page has its own names for its fields. */
export function AddMember({ store, state }: { store: Store; state: State }) {
  const [group, setGroup] = useState("app");
  const [kind, setKind] = useState("eager: range");
  const [instance, setInstance] = useState("");
  const topics = Object.keys(state.snapshot?.topics ?? {});
  const add = (event: Event) => {
    event.preventDefault();
    const named = instance ? { instance_id: instance } : {};
    void store.act({ do: "add_member", group, topics, ...KINDS[kind], ...named });
  };
  return (
    <form onSubmit={add} class="line">
      <label>
        <Term id="group" /> <input value={group} required size={8} onInput={(event) => setGroup(event.currentTarget.value)} />
      </label>
      <label>
        Protocol and <Term id="assignor" />{" "}
        <select value={kind} onChange={(event) => setKind(event.currentTarget.value)}>
          {Object.keys(KINDS).map((each) => (
            <option key={each}>{each}</option>
          ))}
        </select>
      </label>
      <label>
        group.instance.id <input value={instance} size={8} placeholder="none" onInput={(event) => setInstance(event.currentTarget.value)} />
      </label>
      <button type="submit" class="primary" disabled={state.busy}>
        Add a member
      </button>
    </form>
  );
}

/** Moves the clock. */
export function Clock({ store, state }: { store: Store; state: State }) {
  const [by, setBy] = useState("46");
  const groups = Object.keys(state.snapshot?.groups ?? {});
  const advance = (seconds: number) => void store.act({ do: "advance", seconds });
  return (
    <div class="line" role="group" aria-label="The clock">
      {[1, 3, 10].map((each) => (
        <button key={each} type="button" disabled={state.busy} onClick={() => advance(each)}>
          +{each} s
        </button>
      ))}
      <form
        class="line"
        onSubmit={(event) => {
          event.preventDefault();
          advance(Number(by));
        }}
      >
        <label>
          by <input type="number" min="0" step="any" required value={by} onInput={(event) => setBy(event.currentTarget.value)} /> s
        </label>
        <button type="submit" disabled={state.busy}>
          Advance
        </button>
      </form>
      <button
        type="button"
        disabled={state.busy || !state.snapshot?.deadlines.length}
        onClick={() => void store.act({ do: "advance_to_next_deadline" })}
      >
        To the next deadline
      </button>
      {groups.map((group) => (
        <button
          key={group}
          type="button"
          disabled={state.busy}
          onClick={() => void store.act({ do: "advance_until_stable", group })}
        >
          Until {group} is stable
        </button>
      ))}
    </div>
  );
}

/** The actions so far; the last one can be taken back, because the same actions always lead to the same. */
export function HistoryPanel({ store, state, mode }: { store: Store; state: State; mode: Extract<Mode, { kind: "play" }> }) {
  return (
    <Panel
      title="Actions so far"
      aside={
        <>
          <button type="button" disabled={state.busy || !mode.actions.length} onClick={() => void store.undo()}>
            Undo
          </button>{" "}
          <button type="button" disabled={state.busy} onClick={() => void store.play({}, [])}>
            New cluster
          </button>
        </>
      }
    >
      {mode.actions.length ? (
        <ol class="mono history">
          {mode.actions.map((action, place) => (
            <li key={place}>{called(action)}</li>
          ))}
        </ol>
      ) : (
        <p class="quiet">Nothing yet: three brokers, and a topic orders with six partitions. Add a member.</p>
      )}
    </Panel>
  );
}
