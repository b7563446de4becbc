/** What a live page can do to its cluster: the buttons, and what they ask the HTTP control for. */
import type { Action, ActionField } from "../data.ts";
import type { Control } from "./control.ts";

/** What `GET /status` says, as far as it matters here. */
export interface Status {
  name: string;
  clock: { mode: string };
  brokers: { id: number }[];
}

type Values = Record<string, string>;

interface Rule {
  id: number;
  text: string;
  is_removed?: boolean;
  waiting?: unknown[];
}

const GROUP: ActionField = { name: "group", label: "Group", kind: "group" };
const MEMBER: ActionField = { name: "member", label: "Member", kind: "member" };

export function actionsOf(control: Control, status: Status): Action[] {
  const post = (path: string, body?: unknown) => control.ask("POST", path, body ?? {}).then(() => "");
  const ofGroup = (name: string, body: (values: Values) => unknown) => (values: Values) =>
    post(`groups/${encodeURIComponent(values.group!)}/${name}`, body(values));
  const manual = status.clock.mode === "manual" ? "" : `The clock is ${CLOCKS[status.clock.mode] ?? status.clock.mode}: --clock manual lets you move it.`;
  const several = status.brokers.length > 1 ? "" : "There is one broker only: --brokers 3 starts three.";
  const rules = (path: string) => async (): Promise<[string, string][]> =>
    (await control.json<Rule[]>("GET", path)).filter((rule) => !rule.is_removed).map((rule) => [String(rule.id), rule.text]);
  return [
    {
      name: "expire-member", label: "Expire a member", about: "Its session runs out now, as if nothing had been heard of it.",
      fields: [GROUP, MEMBER], disabled: "", run: ofGroup("expire-member", ({ member }) => ({ member })),
    },
    {
      name: "remove-member", label: "Remove a member", about: "An administrator takes it out of the group (LeaveGroup).",
      fields: [GROUP, MEMBER], disabled: "", run: ofGroup("remove-member", ({ member }) => ({ member })),
    },
    {
      name: "fence-member", label: "Fence a static member", about: "A newcomer takes its instance id, as if it was started twice.",
      fields: [GROUP, { name: "instance_id", label: "Instance id", kind: "text" }], disabled: "",
      run: ofGroup("fence-member", ({ instance_id }) => ({ instance_id })),
    },
    {
      name: "force-rebalance", label: "Force a rebalance", about: "All members have to join again.",
      fields: [GROUP, { name: "reason", label: "Reason", kind: "text", initial: "asked for on the page" }], disabled: "",
      run: ofGroup("force-rebalance", ({ reason }) => ({ reason })),
    },
    {
      name: "move-coordinator", label: "Move the coordinator", about: "Another broker leads the group's partition of __consumer_offsets, and reads it.",
      fields: [GROUP, { name: "to", label: "To", kind: "broker" }], disabled: several, run: ofGroup("move-coordinator", ({ to }) => ({ to: Number(to) })),
    },
    {
      name: "unload-coordinator", label: "Unload the coordinator", about: "The group is not served (NOT_COORDINATOR) until it is loaded again.",
      fields: [GROUP], disabled: "", run: ofGroup("unload-coordinator", () => ({})),
    },
    {
      name: "load-coordinator", label: "Load the coordinator", about: "The group is read from its log, and served again.",
      fields: [GROUP], disabled: "", run: ofGroup("load-coordinator", () => ({})),
    },
    {
      name: "advance", label: "Advance the clock", about: "The time moves on at once; what falls due on the way happens.",
      fields: [{ name: "seconds", label: "Seconds", kind: "number", initial: "5" }], disabled: manual,
      run: ({ seconds }) => post("clock/advance", { seconds: Number(seconds) }),
    },
    {
      name: "create-topic", label: "Create a topic", about: "Members that subscribe to it get its partitions with the next assignment.",
      fields: [{ name: "name", label: "Name", kind: "text" }, { name: "partitions", label: "Partitions", kind: "number", initial: "6" }], disabled: "",
      run: ({ name, partitions }) => post("topics", { name, partitions: Number(partitions) }),
    },
    {
      name: "produce", label: "Produce a record", about: "With a key it goes to the partition of the key, as Kafka's clients choose it.",
      fields: [{ name: "topic", label: "Topic", kind: "topic" }, { name: "key", label: "Key", kind: "text" }, { name: "value", label: "Value", kind: "text", initial: "an espresso" }],
      disabled: "", run: (values) => produce(control, values),
    },
    {
      name: "add-fault", label: "Add a fault", about: "What happens to the next requests of an API: see docs/faults.md.",
      fields: [
        { name: "when", label: "Requests", kind: "choice", choices: ["Heartbeat", "JoinGroup", "SyncGroup", "OffsetCommit", "ConsumerGroupHeartbeat", "Fetch", "Produce"].map((api) => [api, api]) },
        { name: "do", label: "What", kind: "choice", choices: [["drop", "are lost"], ["refuse", "are refused with the code"], ["hold", "are held until released"], ["hold_answer", "have their answers held"]] },
        { name: "code", label: "Code (refused)", kind: "text", initial: "COORDINATOR_NOT_AVAILABLE" },
        { name: "times", label: "How often", kind: "number", initial: "1" },
      ],
      disabled: "", run: (values) => addFault(control, values),
    },
    {
      name: "release", label: "Release what is held", about: "Requests and responses that a fault holds go on.",
      fields: [{ name: "fault", label: "Fault", kind: "choice", load: rules("faults") }], disabled: "",
      run: ({ fault }) => post(`faults/${chosen(fault, "fault")}/release`),
    },
    {
      name: "remove-fault", label: "Remove a fault", about: "It applies to no more requests; what it holds goes on.",
      fields: [{ name: "fault", label: "Fault", kind: "choice", load: rules("faults") }], disabled: "",
      run: ({ fault }) => control.ask("DELETE", `faults/${chosen(fault, "fault")}`).then(() => ""),
    },
    {
      name: "reset", label: "Reset everything", about: "The cluster begins again, with nothing but its settings: all clients are disconnected.",
      fields: [], disabled: "", run: () => post("reset"),
    },
  ];
}

const CLOCKS: Record<string, string> = { real: "the wall clock", fast: "a fast wall clock" };

function chosen(value: string | undefined, what: string): string {
  if (!value) throw new Error(`There is no ${what} now.`);
  return value;
}

async function produce(control: Control, { topic, key, value }: Values): Promise<string> {
  const [place] = await control.json<{ partition: number; offset: number }[]>("POST", `topics/${encodeURIComponent(topic!)}/records`, {
    records: [key ? { key, value } : { value }],
  });
  return place ? `It is in ${topic}-${place.partition} at offset ${place.offset}.` : "";
}

async function addFault(control: Control, { when, do: what, code, times }: Values): Promise<string> {
  const rule = { when, do: what, times: Number(times), ...(what === "refuse" ? { code } : {}) };
  return (await control.json<Rule>("POST", "faults", rule)).text;
}
