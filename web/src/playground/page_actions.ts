/** The actions of Python as the kit's panel of controls wants them, but those that have buttons of their own. */
import type { Action, ActionField } from "../data.ts";
import type { Argument, Done, Snapshot } from "./data.ts";
import type { Store } from "./store.ts";

const HAVE_BUTTONS = new Set(["kill", "leave", "pause", "resume", "stop_polling", "poll", "remove_rule"]);

export function pageActions(store: Store): Action[] {
  const { contents, snapshot } = store.state;
  if (!snapshot) return [];
  return Object.entries(contents.actions)
    .filter(([name]) => !name.startsWith("advance") && !HAVE_BUTTONS.has(name))
    .map(([name, action]) => ({
      name,
      label: name.replaceAll("_", " "),
      about: action.text,
      disabled: missing(Object.keys(action.arguments), snapshot),
      fields: Object.entries(action.arguments).map(([argument, about]) => field(name, argument, about, snapshot)),
      run: async (values) => {
        const done: Done = { do: name };
        for (const [argument, text] of Object.entries(values))
          if (text !== "") done[argument] = valueOf(argument, action.arguments[argument]!, text);
        await store.act(done);
        if (store.state.problem) throw new Error(store.state.problem);
        return store.state.answer && `It was answered ${store.state.answer}`;
      },
    }));
}

/** Why nobody can be chosen for one of these arguments; "" if everybody needed is there. */
function missing(argumentNames: string[], snapshot: Snapshot): string {
  if (argumentNames[0] === "member" && !alive(snapshot.members).length) return "There is no member: add one first.";
  if (argumentNames[0] === "producer" && !alive(snapshot.producers).length) return "There is no producer: add one first.";
  return "";
}

function alive(processes: Record<string, { status: string }>): string[] {
  return Object.keys(processes).filter((name) => !["killed", "closed"].includes(processes[name]!.status));
}

function field(action: string, name: string, about: Argument, snapshot: Snapshot): ActionField {
  const label = `${name}${about.required ? "" : " (optional)"}`;
  const initial = about.default === null || about.default === undefined ? "" : String(about.default);
  const choice = (values: string[]): ActionField => ({
    name,
    label,
    kind: "choice",
    choices: (about.required ? values : ["", ...values.filter((each) => each !== initial)]).map((each) => [each, each || initial || "none"]),
  });
  if (name === "member") return choice(alive(snapshot.members));
  if (name === "producer") return choice(alive(snapshot.producers));
  if (name === "topic" && action !== "create_topic") return { name, label, kind: "topic" };
  if (name === "to" || name === "broker") return { name, label, kind: "broker" };
  if (name === "group") return { name, label, kind: "text", initial: Object.keys(snapshot.groups)[0] ?? "app" };
  if (name === "topics") return { name, label, kind: "text", initial: Object.keys(snapshot.topics).join(", ") };
  if (name === "transactional_id") return { name, label, kind: "text", initial: "billing" };
  if (about.type.startsWith("true")) return choice(["true", "false"]);
  if (about.choices.length && !about.type.startsWith("a list")) return choice(about.choices);
  return { name, label, kind: about.type.includes("number") && !about.type.includes("by name") ? "number" : "text", initial };
}

/** A field's text as JSON: texts as they are, lists with commas, everything else as JSON writes it. */
function valueOf(name: string, about: Argument, text: string): unknown {
  if (about.type.startsWith("a list") && !text.startsWith("[")) return text.split(",").map((each) => each.trim());
  if (about.type.startsWith("a text") || (about.choices.length && !about.type.startsWith("a list"))) return text;
  try {
    return JSON.parse(text);
  } catch {
    throw new Error(`${name}: ${about.type}`);
  }
}
