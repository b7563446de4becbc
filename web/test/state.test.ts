import { expect, test } from "vitest";
import { deadlines } from "../src/kit/model/deadlines.ts";
import type { Entry } from "../src/data.ts";
import type { History } from "../src/kit/model/history.ts";
import { apply, emptyState, type State } from "../src/kit/model/state.ts";
import { entry, history } from "./case.ts";

const ownersOf = (found: History, state: State, group: string) =>
  Object.fromEntries([...state.groups.get(group)!.owners].map(([partition, member]) => [partition, found.names.of(member).slice(0, 10)]).sort());

const placeAfter = (found: History, fits: (each: Entry) => boolean) => found.entries.findIndex(fits) + 1;

test("a classic group: who is in it, who leads, who owns what", () => {
  const found = history();
  const stable = found.at(placeAfter(found, (each) => each.event === "coordinator.StateChanged" && each.fields.target === "Stable"));
  const group = stable.groups.get("baristas")!;
  expect([group.state, group.number, group.assignor, group.members.size]).toEqual(["Stable", 1, "range", 2]);
  expect(found.names.of(group.leader)).toBe("baristas-1");
  expect(ownersOf(found, stable, "baristas")).toEqual({ "orders-0": "baristas-1", "orders-1": "baristas-1", "orders-2": "baristas-2", "orders-3": "baristas-2" });
});

test("who is out owns nothing any more", () => {
  const found = history();
  const after = found.at(placeAfter(found, (each) => each.event === "coordinator.MemberRemoved"));
  expect(after.groups.get("baristas")!.members.size).toBe(1);
  expect(ownersOf(found, after, "baristas")).toEqual({ "orders-0": "baristas-1", "orders-1": "baristas-1" });
});

test("a group of KIP-848 reconciles, and is stable when all are at its epoch", () => {
  const found = history();
  const states = new Set<string>();
  for (let count = 0; count <= found.entries.length; count += 1) {
    const group = found.at(count).groups.get("modern");
    if (group) states.add(group.state);
  }
  expect([...states]).toEqual(["Empty", "Assigning", "Reconciling", "Stable"].filter((each) => states.has(each)));
  const last = found.at(found.entries.length).groups.get("modern")!;
  expect([last.type, last.state, last.owners.size]).toEqual(["consumer", "Stable", 4]);
  expect(last.owners).toEqual(last.target);
});

test("topics have end offsets and leaders, and new ones come", () => {
  const found = history();
  expect(found.at(2).topics.get("orders")!.map(({ end }) => end)).toEqual([0, 0, 0, 0]);
  const last = found.at(found.entries.length);
  expect(last.topics.get("orders")!.map(({ end }) => end)).toEqual([2, 0, 0, 0]);
  expect(last.topics.get("late")).toHaveLength(2);
  expect(last.groups.get("baristas")!.committed.get("orders-0")!.offset).toBe(2);
});

test("offsets of a transaction count when it is committed, unless later ones overtook them", () => {
  const state = emptyState();
  const told = { group: "app", producer_id: 1 };
  apply(state, entry(1, "coordinator.TransactionalOffsetsEnded", { ...told, committed: false, offsets: [["orders", 0, 3]], overtaken: [] }));
  expect(state.groups.get("app")!.committed.size).toBe(0);
  apply(state, entry(2, "coordinator.TransactionalOffsetsEnded", { ...told, committed: true, offsets: [["orders", 0, 3], ["orders", 1, 4]], overtaken: [["orders", 0]] }));
  expect([...state.groups.get("app")!.committed.keys()]).toEqual(["orders-1"]);
});

test("a static member that comes back keeps what it had", () => {
  const state = emptyState();
  const joined = { group: "app", member: "s-1", instance_id: "s", client_id: "c", client_host: "/h", protocols: ["range"], session_timeout_ms: 10, rebalance_timeout_ms: 20, reason: "" };
  apply(state, entry(1, "coordinator.MemberJoined", joined));
  apply(state, entry(2, "coordinator.AssignmentReceived", { group: "app", generation: 1, leader: "s-1", owners: { "s-1": [["orders", 0]] } }));
  apply(state, entry(3, "coordinator.StaticMemberReplaced", { group: "app", instance_id: "s", old_member: "s-1", new_member: "s-2", rebalances: false }));
  const group = state.groups.get("app")!;
  expect([...group.members.keys()]).toEqual(["s-2"]);
  expect(group.owners.get("orders-0")).toBe("s-2");
});

test("a session is due when nothing was heard for its timeout, as the timer that fired says", () => {
  const found = history();
  const place = found.entries.findIndex((each) => each.event === "trace.TimerExpired" && each.fields.kind === "session");
  const timer = found.entries[place]!.fields as { subject: string; due_ms: number };
  const due = deadlines(found.at(place)).find((each) => each.member === timer.subject && each.kind === "session")!;
  expect(due.dueMs).toBe(timer.due_ms);
});

test("while a group waits for its members to join, that is due, and not the sessions of those who wait", () => {
  const found = history();
  const place = placeAfter(found, (each) => each.event === "coordinator.RebalanceStarted" && each.fields.initial === false);
  const pending = deadlines(found.at(place)).filter((each) => each.group === "baristas");
  expect(pending.map((each) => each.kind)).toEqual(["session", "join"]);
});
