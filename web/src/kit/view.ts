/** What the parts of a page are given: the history, the moment that is shown, and what is selected. */
import type { Source } from "../data.ts";
import type { History } from "./model/history.ts";
import type { State } from "./model/state.ts";

export interface View {
  source: Source;
  history: History;
  /** The state at the moment that is shown, which is behind so many entries. */
  state: State;
  count: number;
  /** The group that is shown; "" if there is none. */
  group: string;
  /** The entry that is explained; null if none was chosen. */
  selected: number | null;
  select(seq: number | null): void;
  showGroup(name: string): void;
}

/** `3 members`, `1 member`. */
export function counted(count: number, noun: string): string {
  return `${count.toLocaleString("en")} ${noun}${count === 1 ? "" : "s"}`;
}

/** `45.0 s`, `300 ms`. */
export function duration(ms: number): string {
  if (Math.abs(ms) < 1_000) return `${ms} ms`;
  return ms < 120_000 ? `${(ms / 1_000).toFixed(1)} s` : `${(ms / 60_000).toFixed(1)} min`;
}
