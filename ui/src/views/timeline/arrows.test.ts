import { expect, test } from "vitest";
import type { Chain, Lane, LaneKind, Slice, Timeline } from "../../data/types";
import { linksOf } from "./arrows";

const NAMES = ["guest_l2", "handling_l2", "preempted", "task", "handling_l2_by_l1"];
const lane = (id: number, kind: LaneKind) => ({ id, kind, group: "", title: "", tid: id }) as Lane;
const slice = (from_ns: number, to_ns: number, state: string, detail = ""): Slice => ({
  index: from_ns,
  from_ns,
  to_ns,
  state: NAMES.indexOf(state),
  detail,
});
const timeline = {
  states: NAMES.map((name) => ({ name, title: name })),
  lanes: [lane(0, "vcpu"), lane(1, "cpu"), lane(2, "cpu"), lane(3, "guest_vcpu")],
} as Timeline;
const slices = (...some: Slice[]) => ({ slices: some, left_out: 0 });
const chain = { lane: 0, reason: "CPUID", from_ns: 10, to_ns: 40, exits: 3, cost_ns: 30 } as Chain;

test("a preempted vCPU leads to the task that its CPU began with in that nanosecond, if there is one alone", () => {
  const vcpu = slices(slice(0, 100, "guest_l2"), slice(100, 200, "preempted"));
  const hog = slices(slice(100, 200, "task", "hog (9)"));
  const late = slices(slice(101, 200, "task", "late (8)"));
  const found = linksOf(timeline, new Map([[0, vcpu], [1, hog], [2, late]]), []); // biome-ignore format: a row each
  expect(found).toEqual([
    {
      from: { lane: 0, ns: 100, state: "preempted" },
      to: { lane: 1, ns: 100, state: "task" },
      label: "hog (9)",
    },
  ]);
  expect(linksOf(timeline, new Map([[0, vcpu], [1, hog], [2, hog]]), [])).toEqual([]); // biome-ignore format: as above
});

test("a chain leads to where L2 runs again, and to L1's own record of its exit", () => {
  const host = slices(slice(0, 10, "guest_l2"), slice(10, 40, "handling_l2", "CPUID"));
  const own = slices(
    slice(12, 30, "handling_l2_by_l1", "CPUID"),
    slice(50, 60, "handling_l2_by_l1", "CPUID"),
  );
  const found = linksOf(timeline, new Map([[0, host], [3, own]]), [chain]); // biome-ignore format: a row each
  expect(found.map(({ to, label }) => [to.lane, to.ns, label])).toEqual([
    [0, 40, "CPUID: 3 exits of L1"],
    [3, 12, "CPUID in L1's own trace"],
  ]);
  expect(linksOf(timeline, new Map([[3, own]]), [chain])).toEqual([]);
});
