/** What a person can do to a living cluster. Where it cannot be done, the button stays and says why. */
import { useEffect, useId, useState } from "preact/hooks";
import type { Action, ActionField } from "../data.ts";
import { Panel } from "./panel.tsx";
import type { View } from "./view.ts";

export function Controls({ view }: { view: View }) {
  const { actions } = view.source;
  const [open, setOpen] = useState<string>("");
  const [said, setSaid] = useState<{ text: string; failed: boolean } | null>(null);
  if (!actions.length) return null;
  const run = (action: Action, values: Record<string, string>) => {
    setSaid({ text: `${action.label} …`, failed: false });
    action.run(values).then(
      (text) => setSaid({ text: text || `${action.label}: done`, failed: false }),
      (problem: Error) => setSaid({ text: problem.message, failed: true }),
    );
  };
  return (
    <Panel title="Actions" class="controls">
      <div class="buttons">
        {actions.map((action) => (
          <button
            key={action.name}
            type="button"
            aria-expanded={open === action.name}
            aria-disabled={action.disabled !== ""}
            aria-description={action.disabled || undefined}
            title={action.disabled || action.about}
            onClick={() => (action.disabled ? setSaid({ text: action.disabled, failed: true }) : setOpen(open === action.name ? "" : action.name))}
          >
            {action.label}
          </button>
        ))}
      </div>
      {actions.map((action) => action.name === open && <Form key={action.name} action={action} view={view} run={run} />)}
      <p role="status" class={said?.failed ? "badge bad said" : "said"}>{said?.text}</p>
    </Panel>
  );
}

function Form({ action, view, run }: { action: Action; view: View; run(action: Action, values: Record<string, string>): void }) {
  const id = useId();
  const [loaded, setLoaded] = useState<Record<string, [string, string][]>>({});
  const [given, setGiven] = useState<Record<string, string>>({});
  useEffect(() => {
    for (const { name, load } of action.fields)
      load?.().then((found) => setLoaded((others) => ({ ...others, [name]: found })), () => {});
  }, [action]);
  const choices = (field: ActionField) => (field.load ? (loaded[field.name] ?? []) : choicesOf(view, field));
  const valueOf = (field: ActionField): string => {
    const there = choices(field);
    const value = given[field.name] ?? (field.kind === "group" ? view.group : (field.initial ?? there?.[0]?.[0] ?? ""));
    return there && !there.some(([each]) => each === value) ? (there[0]?.[0] ?? "") : value;
  };
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        run(action, Object.fromEntries(action.fields.map((field) => [field.name, valueOf(field)])));
      }}
    >
      <p class="quiet">{action.about}</p>
      {action.fields.map((field) => {
        const set = (value: string) => {
          setGiven({ ...given, [field.name]: value });
          if (field.kind === "group") view.showGroup(value);
        };
        const there = choices(field);
        return (
          <div key={field.name} class="field">
            <label for={`${id}-${field.name}`}>{field.label}</label>
            {there ? (
              <select id={`${id}-${field.name}`} value={valueOf(field)} onChange={(event) => set(event.currentTarget.value)}>
                {there.map(([value, text]) => <option key={value} value={value}>{text}</option>)}
              </select>
            ) : (
              <input id={`${id}-${field.name}`} value={valueOf(field)} inputMode={field.kind === "number" ? "numeric" : "text"} onInput={(event) => set(event.currentTarget.value)} />
            )}
          </div>
        );
      })}
      <button type="submit">{action.label}</button>
    </form>
  );
}

/** What can be chosen for a field; null if anything can be written. */
function choicesOf(view: View, field: ActionField): [string, string][] | null {
  const { state, history } = view;
  switch (field.kind) {
    case "group":
      return [...state.groups.values()].filter((group) => !group.gone).map((group) => [group.name, group.name]);
    case "member":
      return [...(state.groups.get(view.group)?.members.keys() ?? [])].map((id) => [id, history.names.of(id)]);
    case "topic":
      return [...state.topics.keys()].filter((name) => !name.startsWith("__")).map((name) => [name, name]);
    case "broker":
      return state.brokers.map((broker) => [String(broker.id), `broker ${broker.id}`]);
    case "choice":
      return field.choices ?? [];
    default:
      return null;
  }
}
