/** What is outside of the brokers: the processes of members and producers, and the faults of the network. */
import { Panel } from "../kit/panel.tsx";
import { Term } from "../kit/glossary.tsx";
import type { MemberProcess, Snapshot } from "./data.ts";
import type { State, Store } from "./store.ts";
import { Badge } from "./words.tsx";

const BUTTONS: Record<MemberProcess["status"], [action: string, words: string][]> = {
  running: [["kill", "Kill"], ["leave", "Close"], ["pause", "Pause"], ["stop_polling", "Stop polling"], ["commit", "Commit"]],
  "not polling": [["poll", "Poll"], ["kill", "Kill"], ["leave", "Close"]],
  paused: [["resume", "Resume"], ["commit", "Commit"], ["kill", "Kill"]],
  killed: [],
  closed: [],
};

/** Each member as it sees itself, which is not always what the coordinator has. */
export function MembersPanel({ store, state, snapshot }: { store: Store; state: State; snapshot: Snapshot }) {
  const members = Object.entries(snapshot.members);
  const playing = state.mode.kind === "play";
  return (
    <Panel title={<><Term id="member">Members</Term> and producers, as they see themselves</>}>
      {members.length ? (
        <ul class="cards">
          {members.map(([name, member]) => (
            <li key={name} class="card">
              <h3>
                {name} <Badge state={member.status} />
              </h3>
              <p class="quiet">
                group {member.group}, {member.protocol === "consumer" ? "KIP-848" : member.assignors.join(", ")}
                {member.instance_id !== null && <>, instance {member.instance_id}</>}
              </p>
              <p>
                {member.generation < 0 ? "not in the group yet" : `${member.protocol === "consumer" ? "epoch" : "generation"} ${member.generation}`}
                , owns {member.owns.length ? member.owns.join(", ") : "nothing"}
              </p>
              {member.errors.map((error) => (
                <p key={error} class="problem">{error}</p>
              ))}
              {playing && <div class="line" role="group" aria-label={`What can happen to ${name}`}>
                {BUTTONS[member.status].map(([action, words]) => (
                  <button key={action} type="button" disabled={state.busy} onClick={() => void store.act({ do: action, member: name })}>
                    {words}
                  </button>
                ))}
                {member.status === "running" && (
                  <button
                    type="button"
                    disabled={state.busy}
                    onClick={() =>
                      void store.act({
                        do: "add_rule",
                        rule: { when: member.protocol === "consumer" ? "ConsumerGroupHeartbeat" : "Heartbeat", client_id: name, do: "drop", times: "always" },
                      })
                    }
                  >
                    Drop heartbeats
                  </button>
                )}
              </div>}
            </li>
          ))}
        </ul>
      ) : (
        !Object.keys(snapshot.producers).length && <p class="quiet">There are none.</p>
      )}
      {Object.entries(snapshot.producers).map(([name, producer]) => (
        <p key={name}>
          Producer {name} <Badge state={producer.status} /> of {producer.transactional_id}: producer id {producer.producer_id}, epoch {producer.epoch}
        </p>
      ))}
      {Object.entries(snapshot.rules).map(([name, rule]) => (
        <p key={name}>
          Fault {name}: <code>{rule.text}</code>, acted {rule.uses} times{" "}
          {playing && <button type="button" disabled={state.busy} onClick={() => void store.act({ do: "remove_rule", name })}>
            Remove
          </button>}
        </p>
      ))}
    </Panel>
  );
}
