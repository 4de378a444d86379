import { describe, expect, it } from "vitest";
import { lanesOf, listOf, meanOf } from "./lanes";

describe("lists of lanes", () => {
  it("have ranges, and come back as they were", () => {
    expect(listOf([3, 1, 2, 7, 7, 9, 10])).toBe("1-3,7,9-10");
    expect(lanesOf("1-3,7,9-10")).toEqual([1, 2, 3, 7, 9, 10]);
    expect(lanesOf(listOf([]))).toEqual([]);
    expect(lanesOf("x,2,5-1,0-99999999")).toEqual([2]);
  });

  it("have a number for each group, the same for the same lanes", () => {
    expect(meanOf([4, 5])).toBe(meanOf([5, 4]));
    expect(meanOf([4, 5])).not.toBe(meanOf([4, 6]));
    expect(meanOf([4, 5])).toBeGreaterThan(1e9);
  });
});
