import { expect, test } from "vitest";
import type { Brief, RecordingInfo } from "../data/types";
import { arranged, ORDERS } from "./recordings";

const info = (id: string, created: string | null): RecordingInfo => ({
  id,
  title: id,
  created,
  emulated: null,
  levels: ["L0"],
  bytes: 1,
  problem: null,
});
const brief = (severity: "low" | "high", duration_ns: number): Brief => ({
  duration_ns,
  findings: 1,
  answer: "It waited.",
  time: [],
  worst: { severity, rule: "FLW-PREEMPT", title: "waited" },
  problem: null,
});
const all = [info("a", "2026-01-01T00:00:00Z"), info("b", null), info("c", "2026-02-01T00:00:00Z")];
const briefs = new Map([
  ["a", brief("low", 5)],
  ["b", brief("high", 3)],
]);
const by = (id: string, filter = "") => {
  const order = ORDERS.find((order) => order.id === id)!;
  return arranged([...all], briefs, order, filter)
    .map((info) => info.id)
    .join("");
};

test("what is not read yet stands last, and equal ones stay as they were", () => {
  expect([by("name"), by("worst"), by("newest"), by("longest")]).toEqual(["abc", "bac", "cab", "abc"]);
});

test("a filter looks at names, answers and findings", () => {
  expect([by("name", "high preempt"), by("name", "l0 C"), by("name", "nothing")]).toEqual(["b", "c", ""]);
});
