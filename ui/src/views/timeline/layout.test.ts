import { describe, expect, it } from "vitest";
import type { Lane, LaneKind, Timeline } from "../../data/types";
import { AS_GIVEN, between, groupsOf, layout, type Order } from "./layout";

const lane = (id: number, kind: LaneKind, group: string): Lane => ({
  id,
  kind,
  group,
  title: `${id}`,
  tid: null,
  slices: 1,
  chains: 0,
});
const lanes = [
  lane(0, "vcpu", "web"),
  lane(1, "vcpu", "web"),
  lane(2, "cpu", "host CPUs"),
  lane(3, "cpu", "host CPUs"),
  lane(4, "vhost", "host threads"),
];
const timeline = { states: [{ name: "guest_l2", title: "" }] } as Timeline;
const room = { height: 600, fewInMean: () => false };
const place = (turned: string[], some = lanes, order: Order = AS_GIVEN) =>
  layout(timeline, some, new Map(), new Set(turned), room, order);

describe("the layout of lanes", () => {
  it("has a line for each group, vCPUs open and all others folded", () => {
    expect(groupsOf(lanes).map((group) => [group.title, group.open])).toEqual([
      ["web (2)", true],
      ["host CPUs (2)", false],
      ["host threads", false],
    ]);
    const { groups, lanes: placed } = place([]);
    expect(groups.map((group) => group.folded)).toEqual([false, true, true]);
    expect(placed.map((it) => it.id)).toEqual([0, 1]);
  });

  it("keeps the mean of a group that was unfolded, and has none of one that is open by itself", () => {
    expect(place([]).groups.map((group) => group.mean)).toEqual([false, true, true]);
    const { groups, lanes: placed } = place(["host CPUs"]);
    expect(groups.map((group) => group.mean)).toEqual([false, true, true]);
    expect(groups[1]!.folded).toBe(false);
    expect(placed[2]!.top).toBeGreaterThanOrEqual(groups[1]!.top + groups[1]!.height);
  });

  it("turns what the address names", () => {
    expect(place(["web", "host CPUs"]).lanes.map((it) => it.id)).toEqual([2, 3]);
  });

  it("lets nothing lie on anything else", () => {
    const { groups, lanes: placed, height } = place(["host CPUs", "host threads"]);
    const all = [...groups, ...placed].sort((a, b) => a.top - b.top);
    for (const [i, it] of all.entries())
      expect(it.top + it.height).toBeLessThanOrEqual(all[i + 1]?.top ?? height);
  });

  it("of one group alone has no line for it, and it is open whatever the address says", () => {
    expect(place([], lanes.slice(0, 2)).groups).toEqual([]);
    const cpus = place(["host CPUs"], lanes.slice(2, 4));
    expect([cpus.groups.length, cpus.lanes.map((it) => it.id)]).toEqual([0, [2, 3]]);
  });

  it("opens all groups where no vCPU is known, with the rows that occur", () => {
    const rest = lanes.slice(2);
    expect(place([], rest).lanes.map((it) => it.id)).toEqual([2, 3, 4]);
    expect(place(["host CPUs"], rest).groups.map((group) => group.folded)).toEqual([true, false]);
    const known = { states: [{ name: "task", title: "" }] } as Timeline;
    const some = new Map([[2, { slices: [], left_out: 0 }]]);
    expect(layout(known, rest, some, new Set(), room).lanes[0]!.steps).toEqual(["task"]);
    // Pinned vCPUs are vCPUs all the same.
    const pinned = place([], lanes, { ...AS_GIVEN, pinned: [0, 1] });
    expect(pinned.lanes.map((it) => it.id)).toEqual([0, 1]);
  });

  it("has pinned lanes first, sorted ones next, and of a filter what fits, whatever its kind", () => {
    const pinned = place([], lanes, { ...AS_GIVEN, pinned: [3] });
    expect(pinned.groups.map((group) => group.title)).toEqual([
      "Pinned (1)",
      "web (2)",
      "host CPUs",
      "host threads",
    ]);
    expect(pinned.lanes.map((it) => it.id)).toEqual([3, 0, 1]);
    const sorted = { ids: [4, 1, 3, 2, 0], title: "Most preempted first" };
    expect(place([], lanes, { ...AS_GIVEN, sorted }).lanes.map((it) => it.id)).toEqual([1, 0]);
    expect(place([], lanes, { ...AS_GIVEN, filter: "cpu 4 host" }).lanes.map((it) => it.id)).toEqual([]);
    expect(place([], lanes, { ...AS_GIVEN, filter: "HOST 3" }).lanes.map((it) => it.id)).toEqual([3]);
  });

  it("keeps the heights of many lanes, whichever of them have slices", () => {
    const many = Array.from({ length: 64 }, (_, id) => lane(id, "vcpu", "web"));
    const deep = { ...room, fewInMean: () => true };
    const none = layout(timeline, many, new Map(), new Set(), deep);
    const some = layout(timeline, many, new Map([[5, { slices: [], left_out: 0 }]]), new Set(), deep);
    expect(some.lanes[5]!.steps).not.toBeNull();
    expect(some.lanes.map((it) => it.top)).toEqual(none.lanes.map((it) => it.top));
    const seen = between(some, some.lanes[10]!.top + 1, some.lanes[12]!.top);
    expect(seen.lanes.map((it) => it.id)).toEqual([10, 11]);
  });
});
