import { describe, expect, test } from "vitest";
import { parseLines } from "../src/data.ts";
import { History, LIMIT, moment } from "../src/kit/model/history.ts";
import { apply, emptyState } from "../src/kit/model/state.ts";
import { batch, entry, history } from "./case.ts";

describe("the state at a moment", () => {
  test("is that of a replay up to there, in whatever order moments are asked for", () => {
    const { entries } = batch();
    const all = history();
    for (const count of [200, 10, 0, entries.length, 150, 151, 60]) {
      const replayed = emptyState();
      entries.slice(0, count).forEach((each) => apply(replayed, each));
      expect(all.at(count)).toEqual(replayed);
    }
  });

  test("is found behind snapshots, too", () => {
    const long = new History();
    const joins = Array.from({ length: 3_500 }, (_, place) => entry(place + 1, "trace.ConnectionOpened", { connection_id: place, client_host: "/127.0.0.1" }));
    long.add({ entries: joins });
    expect(long.at(2_345).connections.size).toBe(2_345);
    expect(long.at(999).connections.size).toBe(999);
    expect(long.at(1_000).connections.size).toBe(1_000);
  });
});

test("an entry that is told twice, as after a broken connection, is kept once", () => {
  const { entries } = batch();
  const found = history();
  found.add({ entries: entries.slice(-3) });
  expect(found.entries).toHaveLength(entries.length);
});

test("with a header all before is forgotten", () => {
  const found = history();
  found.add({ header: { schema: "groupcoord-trace", version: 2, start_ms: 5, dropped: {} }, entries: [entry(1, "trace.ServerFailed")] });
  expect(found.entries).toHaveLength(1);
  expect(found.timelines.groups()).toEqual([]);
  expect(found.startMs).toBe(5);
});

test("a long life is cut at its beginning, and the state at what is left is right still", () => {
  const long = new History();
  const first = [
    entry(1, "coordinator.GroupCreated", { group: "app", simple: false }),
    entry(2, "coordinator.OffsetsCommitted", { group: "app", member: "", generation: -1, offsets: [["orders", 0, 7]] }),
  ];
  const quiet = Array.from({ length: LIMIT }, (_, place) => entry(place + 3, "trace.ServerFailed"));
  long.add({ entries: [...first, ...quiet] });
  expect(long.entries.length).toBeLessThan(LIMIT);
  expect(long.cut + long.entries.length).toBe(LIMIT + 2);
  for (const count of [0, 1, long.entries.length]) {
    expect(long.at(count).groups.get("app")!.committed.get("orders-0")!.offset).toBe(7);
  }
});

test("an entry knows what led to it, what followed, and its answer", () => {
  const found = history();
  const removed = found.entries.find((each) => each.event === "coordinator.MemberRemoved")!;
  const timer = found.causes(removed.seq);
  expect(timer.map((each) => each.event)).toEqual(["trace.TimerExpired"]);
  expect(found.consequences(timer[0]!.seq)).toContain(removed.seq);
  const request = found.entries.find((each) => each.event === "trace.RequestReceived")!;
  expect(found.entry(found.answerTo(request.seq))!.event).toBe("trace.ResponseSent");
});

test("unknown types of events and fields are ignored", () => {
  const line = JSON.stringify({ ...entry(1, "mine.Something", { group: "app", odd: [1] }), later: true });
  const found = new History();
  found.add(parseLines(`${line}\n`));
  expect(found.at(1).groups.size).toBe(0);
  expect(found.entries[0]!.text).toBe("mine.Something");
});

test("moments are said to the millisecond where that says something", () => {
  expect([0, 61_200, 61_234, 1_234_567, 5].map(moment)).toEqual(["0.0 s", "61.2 s", "61.234 s", "1,234.567 s", "0.005 s"]);
});
