import { expect, test } from "vitest";
import type { Finding, Report, Table } from "../data/types";
import { findingsOfBoth, pairTree, sideOf } from "./both";

const table = (names: string[], rows: (string | number)[][]): Table => ({
  columns: names.map((name) => ({ name, unit: "", type: "", key: false })),
  rows,
});

function report(guest: number, preempted: number, vm: string, findings: Partial<Finding>[] = []): Report {
  const vcpus = table(
    ["vm", "vcpu", "wall_ns", "guest_l1_ns", "preempted_ns"],
    [[vm, 0, guest + preempted, guest, preempted]],
  );
  const section = { id: "flow", question: "", summary: "", figures: [], unknown: [] };
  return {
    schema: "",
    recording: { path: "", emulated: null },
    sections: [{ ...section, findings: findings as Finding[], tables: { vcpus } }],
    problems: [],
  };
}

test("the same width is the same share of the time on both sides, whatever the VM is called", () => {
  const root = pairTree([report(40, 60, "qemu-1"), report(900, 100, "qemu-2")], (state) => state);
  const shares = (side: "before" | "after") =>
    sideOf(root, side, [], 0)
      .filter(({ depth }) => depth === 2)
      .map(({ pair, from, to }) => [pair.name, from.toFixed(2), to.toFixed(2)]);
  expect(shares("before")).toEqual([
    ["guest_l1", "0.00", "0.40"],
    ["preempted", "0.40", "1.00"],
  ]);
  expect(shares("after")).toEqual([
    ["guest_l1", "0.00", "0.90"],
    ["preempted", "0.90", "1.00"],
  ]);
  const opened = sideOf(root, "after", ["off CPU"], 0)[0]!;
  expect(opened.to).toBeCloseTo(0.1 / 0.6);
});

test("a finding stays where only the number of a process changed", () => {
  const finding = (rule: string, subject: string, rank: number) => ({
    id: `${rule}@${subject}`,
    rule,
    subject,
    rank,
  });
  const before = [finding("FLW-VLS", "qemu-98", 1), finding("EVD-HOG", "qemu-98", 2)];
  const after = [finding("FLW-VLS", "qemu-104", 1), finding("LAT-X", "qemu-104", 2)];
  const { gone, fresh, stay } = findingsOfBoth(report(1, 1, "a", before), report(1, 1, "a", after));
  expect([gone, fresh, stay].map((all) => all.map(({ id }) => id))).toEqual([
    ["EVD-HOG@qemu-98"],
    ["LAT-X@qemu-104"],
    ["FLW-VLS@qemu-104"],
  ]);
});

test("parts too narrow to be seen are drawn as one, so that a row is as full as the time is", () => {
  const thin = Array.from({ length: 30 }, (_, i) => ({
    name: `R${i}`,
    state: "handling_l1",
    before: 0.01,
    after: 0.01,
    children: [],
  }));
  const children = [{ ...thin[0]!, name: "wide", before: 0.7, after: 0.7 }, ...thin];
  const root = { name: "all", state: "", before: 1, after: 1, children };
  const row = sideOf(root, "after", [], 0.02).filter(({ depth }) => depth === 1);
  expect(row.map(({ from, to }) => [from.toFixed(2), to.toFixed(2)])).toEqual([
    ["0.00", "0.70"],
    ["0.70", "1.00"],
  ]);
  expect(row[1]!.pair.name).toMatch(/^30 parts: R0, R1/);
});
