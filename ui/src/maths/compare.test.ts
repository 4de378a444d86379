import { describe, expect, it } from "vitest";
import { apart, changeIn, changes, pointsIn } from "./compare";

const row = (vcpu: number, reason: string, count: number, total_ns: number) => ({
  vm: "vm",
  vcpu,
  level: "L1",
  reason,
  count,
  total_ns,
});

describe("two recordings", () => {
  it("are compared per second, with vCPUs summed on both sides", () => {
    const before = { rows: [row(0, "MSR", 100, 1000), row(1, "MSR", 300, 3000)], units: 2 };
    const after = { rows: [row(0, "MSR", 100, 1000), row(0, "HLT", 1, 5)], units: 1 };
    const [msr, hlt] = changes(before, after);
    expect(msr).toEqual({
      level: "L1",
      reason: "MSR",
      before: { count: 200, time_ns: 2000 },
      after: { count: 100, time_ns: 1000 },
    });
    expect(hlt!.before.count).toBe(0);
  });

  it("do not improve because one is shorter", () => {
    const [change] = changes(
      { rows: [row(0, "VMRESUME", 149, 1490)], units: 3 },
      { rows: [row(0, "VMRESUME", 149 / 3, 1490 / 3)], units: 1 },
    );
    expect(changeIn(change!.before.count, change!.after.count)).toBe("same");
  });

  it("say how far one is from the other", () => {
    expect([changeIn(200, 164), changeIn(1, 3.5), changeIn(0, 4), changeIn(4, 0)]).toEqual([
      "\u221218.0 %",
      "+250 %",
      "new",
      "gone",
    ]);
  });

  it("are named by what tells them apart", () => {
    const pair = ["nested-vmx-shadow-off-hog", "nested-vmx-shadow-on"] as const;
    expect(apart(...pair)).toEqual(["…-off-hog", "…-on"]);
    expect(apart("before", "after")).toEqual(["before", "after"]);
    expect(apart("a-long-name-of-one", "another-name-of-one")).toEqual([
      "a-long-name-of-one",
      "another-name-of-one",
    ]);
  });

  it("say of a share how many points it moved, and not by what part of itself", () => {
    expect(pointsIn(0.579, 0.662)).toBe("+8.3 points");
    expect(pointsIn(0.14, 0.106)).toBe("\u22123.4 points");
    expect([pointsIn(0.2, 0.2), pointsIn(0, 0.1), pointsIn(0.1, 0)]).toEqual(["same", "new", "gone"]);
    expect(pointsIn(0.1, 0.1001)).toBe("<0.1 points");
  });
});
