import { describe, expect, it } from "vitest";
import type { Lane, LaneKind, Timeline } from "../../data/types";
import { groupsOf, layout } from "./layout";

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
const place = (turned: string[], some = lanes) => layout(timeline, some, new Map(), new Set(turned), 600);

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

  it("turns what the address names", () => {
    expect(place(["web", "host CPUs"]).lanes.map((it) => it.id)).toEqual([2, 3]);
  });

  it("lets nothing lie on anything else", () => {
    const { groups, lanes: placed, height } = place(["host CPUs", "host threads"]);
    const all = [...groups, ...placed].sort((a, b) => a.top - b.top);
    for (const [i, it] of all.entries())
      expect(it.top + it.height).toBeLessThanOrEqual(all[i + 1]?.top ?? height);
  });

  it("of one group alone has no line for it", () => {
    expect(place([], lanes.slice(0, 2)).groups).toEqual([]);
  });
});
