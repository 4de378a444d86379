import { describe, expect, it } from "vitest";
import type { Aggregates, Chain } from "../data/types";
import { cellAt, costAt, nearest, strength, timeAt } from "./heat";

const heat = { columns: 4, rows: 3, from_ns: 10, to_ns: 10_000, cells: [] };
const sums = { t0_ns: 1000, t1_ns: 5000, heat } as unknown as Aggregates;
const chain = (id: number, from_ns: number, cost_ns: number | null) => ({ id, from_ns, cost_ns }) as Chain;

describe("a heat map", () => {
  it("has cells row by row from below, whose lines are times and costs", () => {
    expect(cellAt(heat, 6)).toEqual({ row: 1, column: 2 });
    expect([0, 2, 4].map((column) => timeAt(sums, column))).toEqual([1000, 3000, 5000]);
    expect([0, 1, 3].map((row) => Math.round(costAt(heat, row)))).toEqual([10, 100, 10_000]);
  });

  it("draws one outlier among thousands", () => {
    expect(strength(1, 1000)).toBeGreaterThanOrEqual(0.16);
    expect(strength(1000, 1000)).toBe(1);
  });

  it("finds the chain nearest to a click by time and cost, and none without a cost", () => {
    const chains = [chain(0, 1100, 20), chain(1, 1200, 9000), chain(2, 4900, 8000), chain(3, 1200, null)];
    expect(nearest(sums, chains, 1150, 8500)?.id).toBe(1);
    expect(nearest(sums, chains, 1150, 30)?.id).toBe(0);
    expect(nearest(sums, chains, 4500, 5000)?.id).toBe(2);
    expect(nearest(sums, [chains[3]!], 1200, 10)).toBeNull();
  });
});
