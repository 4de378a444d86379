import { describe, expect, it } from "vitest";
import { icicle, sampleTree, timeTree } from "./tree";

describe("the tree of time", () => {
  const column = (name: string) => ({ name, unit: "", type: "", key: false });
  const report = {
    sections: [
      { id: "bench", tables: { exits: { columns: [], rows: [] }, vcpus: { columns: [], rows: [] } } },
      {
        id: "flow",
        tables: {
          vcpus: {
            columns: ["vm", "vcpu", "wall_ns", "guest_l1_ns", "handling_l1_ns"].map(column),
            rows: [
              ["web", 0, 100, 60, 40],
              ["L1/inner", 0, 100, 100, 0],
            ],
          },
          exits: {
            columns: ["vm", "vcpu", "level", "reason", "count", "total_ns"].map(column),
            rows: [
              ["web", 0, "L1", "MSR", 3, 30],
              ["web", 0, "L1", "HLT", 1, 10],
              ["web", 1, "L1", "HLT", 1, 9],
            ],
          },
          exit_details: {
            columns: ["vm", "vcpu", "level", "reason", "detail", "count", "total_ns"].map(column),
            rows: [
              ["web", 0, "L1", "MSR", "WRMSR TSC_DEADLINE", 2, 24],
              ["web", 1, "L1", "MSR", "elsewhere", 2, 24],
            ],
          },
          profile: {
            columns: ["vm", "vcpu", "level", "state", "mode", "symbol", "samples"].map(column),
            rows: [
              ["web", 0, "L0", "handling_l1", "kernel", "vmx_vcpu_run", 3],
              ["web", 0, "L1", "guest_l1", "guest", "idle", 5],
            ],
          },
        },
      },
    ],
  };

  it("sums to the wall time, and reasons to their state", () => {
    const tree = timeTree(report as never, (state) => state);
    expect(tree.size).toBe(100);
    const placed = icicle(tree, [], 0);
    const reasons = placed.filter((it) => it.depth === 5);
    expect(reasons.map((it) => [it.node.name, it.node.size])).toEqual([
      ["MSR", 30],
      ["HLT", 10],
    ]);
    expect(reasons[0]!.from).toBeCloseTo(0.6, 9);
    expect(icicle(tree, ["web", "vCPU 0"], 0)[0]!.node.size).toBe(100);
  });

  it("divides a reason by what its exits were about, and leaves the rest blank", () => {
    const placed = icicle(
      timeTree(report as never, (state) => state),
      [],
      0,
    );
    const details = placed.filter((it) => it.depth === 6);
    expect(details.map((it) => [it.path.slice(-2), it.node.size])).toEqual([
      [["MSR", "WRMSR TSC_DEADLINE"], 24],
    ]);
  });

  it("has samples by function where a profiler ran", () => {
    const tree = sampleTree(report as never, (state) => state);
    expect(tree.size).toBe(8);
    expect(
      icicle(tree, [], 0)
        .filter((it) => it.depth === 6)
        .map((it) => it.node.name),
    ).toEqual(["idle", "vmx_vcpu_run"]);
  });
});
