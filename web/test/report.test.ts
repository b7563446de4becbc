import { expect, test } from "vitest";
import { causeLine } from "../src/report/group_charts.tsx";
import { filtered, type GroupFilter } from "../src/report/groups_panel.tsx";
import { parseReport, type GroupSummary, type OpenTransaction, type Report, type Storm, type Vocabulary } from "../src/report/model.ts";
import { isYoung } from "../src/report/open_transaction.tsx";
import { alternativeTo, causeOf, reasons } from "../src/report/sentences.ts";
import { amount, axisLabel, duration, isoTime, moment, number, shortened, singular, visible } from "../src/report/text.ts";

const START = Date.parse("2026-01-01T00:00:00Z");

test("numbers have their units, and what is unknown is a dash", () => {
  expect([number(null), number(12345), number(1.26, 1)]).toEqual(["–", "12,345", "1.3"]);
  expect([amount(1, "records"), amount(2, "records"), amount(null, "records")]).toEqual(["1 record", "2 records", "– records"]);
  expect(["storms with fewer rebalances", "pauses that were shorter", "members, that have no more", "partitions with records that were deleted"].map(singular)).toEqual([
    "storm with fewer rebalances", "pause that was shorter", "member, that has no more", "partition with records that were deleted",
  ]);
  expect([7, 1_500, 2_000, 61_000, 3_600_000, 90_061_000].map(duration)).toEqual(["7 ms", "1.5 s", "2 s", "1 min 1 s", "1 h", "1 d 1 h"]);
});

test("times are in UTC, also those that no calendar has", () => {
  expect([moment(START), moment(START + 7, true), moment(null)]).toEqual(["2026-01-01 00:00:00", "2026-01-01 00:00:00.007", "–"]);
  expect(moment(1e18)).toBe("1,000,000,000,000,000,000 ms since 1970");
  expect([isoTime(START), isoTime(1e18)]).toEqual(["2026-01-01T00:00:00.000Z", null]);
  expect([axisLabel(START, 10_000), axisLabel(START, 60_000), axisLabel(START, 1e9)]).toEqual(["00:00:00.000", "00:00:00", "2026-01-01 00:00"]);
  const { overview } = parseReport('{"overview": {"from_ts": "0001-01-01T00:00:00.000Z", "to_ts": "1000000000000000000 ms since 1970", "whole_from_ts": null}}');
  expect([moment(overview.from_ts), overview.to_ts, overview.whole_from_ts]).toEqual(["0001-01-01 00:00:00", 1e18, null]);
});

test("a long name keeps both ends, and what cannot be seen is written by its number", () => {
  expect(shortened("abcdefghi", 6)).toBe("abc…hi");
  expect([visible("plain"), visible("é\u00a0\u202e"), visible("a\0\ud800")]).toEqual(["plain", "é \\u202e", "a\\u0000\\ud800"]);
});

test("a line shows the kind of the cause", () => {
  expect(["members_restarted", "members_left", "members_joined", "became_consumer"].map(causeLine)).toEqual(["else", "lost", "came", "kind"]);
});

const VOCABULARY = {
  symptoms: [
    { column: "storms", meaning: "storms of rebalances", table: "storms", points: 5, among: null },
    { column: "late_partitions", meaning: "partitions whose lag is not OK", table: "lag", points: 4, among: "partitions" },
    { column: "zombies", meaning: "commits as if by a member", table: "zombies", points: 3, among: null },
  ],
  cause_kinds: { members_restarted: "members came back", member_rejoined: "a member joined again" },
  member_events: {},
} as unknown as Vocabulary;

const group = (name: string, said: object) => ({ group: name, kind: "classic", state: "Stable", protocol: "range", points: {}, ...said }) as unknown as GroupSummary;

test("what is wrong with a group begins with what gives most points", () => {
  const app = group("app", { storms: 1, late_partitions: 3, partitions: 4, zombies: 0, points: { storms: 5, late_partitions: 6, zombies: 0 } });
  expect(reasons(app, VOCABULARY)).toBe("3 of 4 partitions whose lag is not OK, 1 storm of rebalances");
  expect(reasons(app, VOCABULARY, 1)).toBe("3 of 4 partitions whose lag is not OK and 1 more");
  expect(reasons(group("calm", {}), VOCABULARY)).toBe("");
});

test("groups are filtered by words, kind, state and problem; those with most of the problem are first", () => {
  const groups = [
    group("a-pay", { zombies: 1, points: { zombies: 3 } }), group("b-Pay", { zombies: 3, kind: "consumer", points: { zombies: 6 } }), group("c", { state: null, protocol: null }),
  ];
  const names = (filter: Partial<GroupFilter>) => filtered(groups, { words: "", kind: "", state: "", problem: "", ...filter }, VOCABULARY).map((each) => each.group);
  expect(names({})).toEqual(["a-pay", "b-Pay", "c"]);
  expect(names({ words: " PAY  range" })).toEqual(["a-pay", "b-Pay"]);
  expect(names({ words: "commits" })).toEqual(["a-pay", "b-Pay"]);
  expect([names({ kind: "consumer" }), names({ state: "gone" }), names({ problem: "zombies" })]).toEqual([["b-Pay"], ["c"], ["b-Pay", "a-pay"]]);
});

test("a transaction is normal for as long as the run says, and one whose age is unknown is not", () => {
  const open = (since_ts: number | null, now: string | null, long_open_after_s = 60) => isYoung({ since_ts } as OpenTransaction, { run: { now, long_open_after_s } } as Report);
  const now = "2026-01-01T00:01:00+00:00";
  expect([open(START, now), open(START + 1, now), open(START + 120_000, now), open(null, now), open(START, null)]).toEqual([false, true, true, false, false]);
  expect([open(START, now, 61), open(START, now, 59)]).toEqual([true, false]);
});

test("a storm says who began it, and what would have stopped less", () => {
  const who = (...names: string[]) => names.map((name) => ({ name, members: 1 }));
  const storm = (said: object) => ({ cause_kind: "members_restarted", came_and_went: [], what_if: [], ...said }) as unknown as Storm;
  expect(causeOf(storm({ came_and_went: who("bob") }), VOCABULARY)).toBe("bob restarted");
  expect(causeOf(storm({ cause_kind: "members_joined", came_and_went: [{ name: "app", members: 40 }, ...who("bob")] }), VOCABULARY)).toBe("app (up to 40 members), bob joined");
  expect(causeOf(storm({ came_and_went: who("a", "", "c", "d") }), VOCABULARY)).toBe("a, (empty), c and others restarted");
  expect(causeOf(storm({}), VOCABULARY)).toBe("members came back");
  expect(causeOf(storm({ cause_kind: "member_rejoined", came_and_went: who("x") }), VOCABULARY)).toBe("a member joined again");
  const played = [["as it was", 378], ["range", 378], ["sticky", 200], ["cooperative-sticky", 138]].map(([assignor, pauses]) => ({ assignor, pauses }));
  expect(alternativeTo(storm({ what_if: played }))).toBe("cooperative-sticky would have stopped 138 partitions instead of 378");
  expect([alternativeTo(storm({})), alternativeTo(storm({ what_if: played.slice(0, 2) })), alternativeTo(storm({ what_if: played.slice(2) }))]).toEqual(["", "", ""]);
});
