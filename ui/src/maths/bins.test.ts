import { describe, expect, it } from "vitest";
import { axisOf, barAt, bars, binsByRow } from "./bins";

const row = (reason: string, from_ns: number, to_ns: number, count: number) => ({
  machine: "L0",
  vm: "vm",
  vcpu: 0,
  level: "L1",
  reason,
  from_ns,
  to_ns,
  count,
});

describe("histograms of exits", () => {
  const rows = binsByRow([
    row("HLT", 1024, 1536, 100),
    row("HLT", 1536, 2048, 25),
    row("MSR", 4096, 8192, 1),
  ]);

  it("belong to their row and keep every exit", () => {
    expect([...rows.keys()]).toEqual(["L0\tvm\t0\tL1\tHLT", "L0\tvm\t0\tL1\tMSR"]);
    expect(rows.get("L0\tvm\t0\tL1\tHLT")!.reduce((sum, bin) => sum + bin.count, 0)).toBe(125);
  });

  it("share one axis, lie beside each other and show the tail", () => {
    const axis = axisOf(rows.values());
    expect(axis).toEqual({ from: 1024, to: 8192 });
    const [first, second] = bars(rows.get("L0\tvm\t0\tL1\tHLT")!, axis);
    expect(first!.left).toBe(0);
    expect(second!.left).toBeCloseTo(first!.left + first!.width, 9);
    expect([first!.height, second!.height]).toEqual([1, 0.5]);
    const under = (at: number) => barAt([first!, second!], at)?.bin.count;
    expect([0, first!.width, 0.5].map(under)).toEqual([100, 25, undefined]);
    const [last] = bars(rows.get("L0\tvm\t0\tL1\tMSR")!, axis);
    expect(last!.left).toBeCloseTo(2 / 3, 9);
    expect(last!.width).toBeCloseTo(1 / 3, 9);
  });

  it("have an axis even where a bin begins at zero, or where there is none", () => {
    expect(axisOf([[{ from: 0, to: 2, count: 1 }]])).toEqual({ from: 1, to: 2 });
    expect(axisOf([])).toEqual({ from: 1, to: 2 });
  });
});
