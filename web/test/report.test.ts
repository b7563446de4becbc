import { expect, test } from "vitest";
import { causeLine } from "../src/report/group_charts.tsx";
import { parseReport } from "../src/report/model.ts";
import { amount, axisLabel, duration, isoTime, moment, number, shortened, visible } from "../src/report/text.ts";

const START = Date.parse("2026-01-01T00:00:00Z");

test("numbers have their units, and what is unknown is a dash", () => {
  expect([number(null), number(12345), number(1.26, 1)]).toEqual(["–", "12,345", "1.3"]);
  expect([amount(1, "records"), amount(2, "records"), amount(null, "records")]).toEqual(["1 record", "2 records", "– records"]);
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
