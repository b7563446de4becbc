import { expect, test } from "vitest";
import { CoordinatorLog } from "../src/kit/model/coordinator_log.ts";
import { entry, history } from "./case.ts";

const appended = (seq: number, base: number, ...records: [string, string | null][]) =>
  entry(seq, "trace.RecordsAppended", {
    topic: "__consumer_offsets", partition: 3, base_offset: base, end_offset: base + records.length,
    records: records.map(([key, value], place) => [base + place, key, value]),
  });

test("a record counts until there is a newer one of its key", () => {
  const log = new CoordinatorLog();
  log.learn(appended(1, 0, ["a", "1"], ["b", "1"]));
  log.learn(appended(5, 2, ["a", null]));
  expect(log.at(4).map(({ counts }) => counts)).toEqual([true, true]);
  expect(log.at(5).map(({ record, counts }) => [record.offset, counts])).toEqual([[0, false], [1, true], [2, true]]);
});

test("compaction takes away what is superseded below its end, from then on", () => {
  const log = new CoordinatorLog();
  log.learn(appended(1, 0, ["a", "1"], ["a", "2"]));
  log.learn(entry(2, "broker.LogCleaned", { log: "__consumer_offsets-3", end_offset: 2 }));
  log.learn(appended(3, 2, ["a", "3"]));
  expect(log.at(1)).toHaveLength(2);
  expect(log.at(2).map(({ record }) => record.offset)).toEqual([1]);
  expect(log.at(3).map(({ record, counts }) => [record.offset, counts])).toEqual([[1, false], [2, true]]);
});

test("what was appended for a group is there", () => {
  const keys = new Set(history().log.at(Infinity).map(({ record }) => record.key.split(" ")[0]));
  expect(keys).toContain("OffsetCommit");
  expect(keys).toContain("GroupMetadata");
  expect(keys).toContain("ConsumerGroupMetadata");
});
