import { expect, test } from "vitest";
import { rowsOf } from "../src/kit/model/folding.ts";
import { folded, history } from "./case.ts";

test("what changed nothing is folded as Python folds it", () => {
  const rows = rowsOf(history(), null, true);
  expect(rows.filter((row) => row.kind === "quiet").map((row) => row.kind === "quiet" && row.words)).toEqual(folded);
});

test("without folding each request has its arrow", () => {
  const found = history();
  const requests = found.entries.filter((each) => each.event === "trace.RequestReceived").length;
  expect(rowsOf(found, null, false).filter((row) => row.kind === "request")).toHaveLength(requests);
});

test("the rows of one group are about no other", () => {
  const rows = rowsOf(history(), "modern", true);
  const groups = new Set(rows.flatMap((row) => (row.kind === "quiet" ? [] : [row.entry.fields.group]).filter((name) => name)));
  expect([...groups]).toEqual(["modern"]);
});
