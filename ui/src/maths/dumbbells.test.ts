import { expect, test } from "vitest";
import type { Dumbbell, DumbbellGroup } from "../data/types";
import { dumbbellScale } from "./dumbbells";

const row = (before: number, after: number, low: number | null = null, high = low): Dumbbell => ({
  label: "",
  before,
  after,
  low,
  high,
  change: "",
  verdict: "",
  sure: "noise",
  mark: "measured",
  hue: "",
});
const group = (logarithmic: boolean, rows: Dumbbell[]): DumbbellGroup => ({
  title: "",
  x: { title: "", unit: "count", logarithmic },
  rows,
});

test("one unsure row does not make the others points", () => {
  expect(dumbbellScale(group(false, [row(40, 2, 1, 6), row(1, 4, 0.1, 9_000)])).to).toBe(80);
});

test("what is gone lies apart from the least number", () => {
  const scale = dumbbellScale(group(true, [row(1_800, 0, 0, 0), row(2, 5)]));
  expect(scale.place(0)).toBe(0);
  expect(scale.place(2)).toBeGreaterThan(0.2);
});

test("a share of a whole ends at all of it", () => {
  const shares = group(false, [row(0.6, 0.7, 0.4, 1.9)]);
  expect(dumbbellScale({ ...shares, x: { ...shares.x, unit: "share" } }).to).toBe(1);
});
