/** What the panels of the playground say in the same way. */
import type { Done } from "./data.ts";

/** `add_member(group="app", topics=["orders"])` */
export function called({ do: name, ...given }: Done): string {
  const told = Object.entries(given).map(([argument, value]) => `${argument}=${JSON.stringify(value)}`);
  return `${name}(${told.join(", ")})`;
}

/** `45.0 s`; of more than two hours `3 h 5 min`. */
export function seconds(ms: number): string {
  if (ms < 7_200_000) return `${(ms / 1000).toLocaleString("en", { minimumFractionDigits: 1, maximumFractionDigits: 3 })} s`;
  const minutes = Math.floor(ms / 60_000);
  return `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}

const OF_STATE: Record<string, string> = {
  Stable: "good",
  Empty: "",
  running: "good",
  closed: "",
  "not polling": "warn",
  paused: "warn",
  killed: "bad",
  Ongoing: "warn",
  CompleteCommit: "good",
  CompleteAbort: "bad",
};

/** The state of a group, a member's process or a transaction. */
export function Badge({ state }: { state: string }) {
  return <span class={`badge ${OF_STATE[state] ?? "warn"}`}>{state}</span>;
}
