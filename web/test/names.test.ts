import { expect, test } from "vitest";
import { meaningOf } from "../src/kit/glossary.tsx";
import { ShortNames } from "../src/kit/model/names.ts";
import { entry } from "./case.ts";

const joined = (seq: number, member: string, client_id: string, instance_id: string | null = null) =>
  entry(seq, "coordinator.MemberJoined", { group: "app", member, client_id, instance_id });

test("a member is called by its client id, or its instance id; of several with the same, each by the beginning of its own part", () => {
  const names = new ShortNames();
  names.learn(joined(1, "alice-11112222-3333", "alice"));
  names.learn(joined(2, "rd-aaaabbbb", "rd"));
  names.learn(joined(3, "rd-aaaacccc", "rd"));
  names.learn(joined(4, "s-9999", "rd", "static-1"));
  expect(["alice-11112222-3333", "rd-aaaabbbb", "rd-aaaacccc", "s-9999", "unknown"].map((id) => names.of(id))).toEqual(["alice", "rd-aaaab", "rd-aaaac", "static-1", "unknown"]);
  expect(names.shortened("leader alice-11112222-3333 (not alice-11112222-3333-x)")).toBe("leader alice (not alice-11112222-3333-x)");
});

test("the glossary has what is explained, and says so if it does not", () => {
  expect(meaningOf("generation")).toContain("classic group");
  expect(() => meaningOf("flux")).toThrow("docs/glossary.json has no term flux");
});
