import { describe, expect, it } from "vitest";
import type { LaneKind } from "../../data/types";
import { fewOf } from "./stairs";

const kinds = new Map<number, LaneKind>([
  [0, "vcpu"],
  [1, "vcpu"],
  [2, "vcpu"],
  [3, "cpu"],
]);
const lanes = [0, 1, 2, 3].map((id) => ({ id, deep: true }));

describe("which lanes are staircases", () => {
  it("are all of a kind, or none of it", () => {
    expect(fewOf(lanes, kinds, () => true)).toEqual({ few: [0, 1, 2, 3], shares: new Set() });
    expect(fewOf(lanes, kinds, (id) => id !== 2)).toEqual({ few: [3], shares: new Set(["vcpu"]) });
    const flat = lanes.map((lane) => ({ ...lane, deep: lane.id !== 3 }));
    expect(fewOf(flat, kinds, () => true)).toEqual({ few: [0, 1, 2], shares: new Set(["cpu"]) });
  });

  it("wait for the tiles of one lane without making shares of the others", () => {
    const loading = (id: number) => (id === 1 ? undefined : true);
    expect(fewOf(lanes, kinds, loading)).toEqual({ few: [0, 2, 3], shares: new Set() });
  });
});
