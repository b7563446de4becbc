import { expect, test } from "vitest";
import { EventParser } from "../src/page/live.ts";
import { entry } from "./case.ts";

const START = 'event: start\ndata: {"run": 1, "start_ms": 7}\n\n';
const told = (seq: number) => `id: 1-${seq}\nevent: entry\ndata: ${JSON.stringify(entry(seq, "trace.ServerFailed"))}\n\n`;

test("events are read, however they are cut to pieces", () => {
  const whole = `${START}${told(1)}: keep-alive\n\n${told(2)}`;
  for (let cut = 0; cut <= whole.length; cut += 1) {
    const parser = new EventParser();
    const batches = [...parser.read(whole.slice(0, cut)), ...parser.read(whole.slice(cut))];
    expect(batches[0]!.header!.start_ms).toBe(7);
    expect(batches.flatMap((batch) => batch.entries.map((each) => each.seq))).toEqual([1, 2]);
    expect(parser.lastId).toBe("1-2");
  }
});

test("a start in between begins anew", () => {
  const batches = new EventParser().read(`${START}${told(1)}${START}${told(1)}`);
  expect(batches.map((batch) => [batch.header !== undefined, batch.entries.length])).toEqual([[true, 0], [false, 1], [true, 0], [false, 1]]);
});
