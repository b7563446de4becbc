/** A saved trace: a classic group whose second member is lost and comes back, and a consumer group of KIP-848. */
import { readFileSync } from "node:fs";
import { parseLines, type Batch, type Entry } from "../src/data.ts";
import { History } from "../src/kit/model/history.ts";

const read = (name: string) => readFileSync(new URL(`cases/${name}`, import.meta.url), "utf8");

export const folded = read("baristas.folded.txt").trim().split("\n");

export function batch(): Batch {
  return parseLines(read("baristas.jsonl"));
}

export function history(): History {
  const found = new History();
  found.add(batch());
  return found;
}

/** An entry of its own, for tests of one thing. */
export function entry(seq: number, event: string, fields: Record<string, unknown> = {}, more: Partial<Entry> = {}): Entry {
  const cause = { type: "AdminAction" as const, action: "a test" };
  return { seq, at_ms: seq, real_ms: 0, event, caused_by: null, answers: null, cause, fields, text: event, ...more };
}
