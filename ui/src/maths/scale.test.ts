import { expect, test } from "vitest";
import { marksAlong, scaleOf } from "./scale";

const axis = (logarithmic: boolean) => ({ title: "window", unit: "ns", logarithmic });

test("scales have round ends and hold every value, as those of the program", () => {
  const linear = (most: number) => scaleOf(axis(false), [0, 3, most]).to;
  expect([8, 10, 11, 37, 180, 316, 1518, 0.52e9].map(linear)).toEqual([8, 10, 12, 40, 200, 350, 1600, 0.6e9]);
  expect(scaleOf(axis(false), [37]).marks).toEqual([0, 10, 20, 30, 40]);
  expect(scaleOf(axis(false), [9]).marks).toEqual([0, 2, 4, 6, 8, 10]);
  expect(scaleOf(axis(false), [180]).marks).toEqual([0, 50, 100, 150, 200]);
  const decades = scaleOf(axis(true), [0, 14, 120_000]);
  expect([decades.from, decades.to]).toEqual([10, 2e5]);
  expect(scaleOf(axis(true), [94e3, 397e3]).marks).toEqual([5e4, 1e5, 2e5, 5e5]);
  expect(scaleOf(axis(true), [1, 9e6]).marks).toEqual([1, 1e2, 1e4, 1e6]);
  expect([10, 2e5, 0, 1e9].map(decades.place)).toEqual([0, 1, 0, 1]);
});

test("an axis from zero ends near its largest value, with marks enough to read it by", () => {
  for (let most = 1e-7; most < 1e12; most *= 1.037) {
    const { to, marks } = scaleOf(axis(false), [most]);
    expect(to).toBeGreaterThanOrEqual(most * (1 - 1e-9));
    expect(to).toBeLessThanOrEqual(most * 1.25 * (1 + 1e-9));
    expect(marks.length).toBeGreaterThanOrEqual(4);
    expect(marks.length).toBeLessThanOrEqual(11);
  }
});

test("nothing to hold is no reason to divide by it", () => {
  for (const logarithmic of [true, false])
    for (const values of [[], [0], [Number.NaN], [-3]]) {
      const scale = scaleOf(axis(logarithmic), values);
      expect(scale.to).toBeGreaterThan(scale.from);
      expect(scale.marks.every(Number.isFinite)).toBe(true);
    }
});

test("a few whole numbers that were measured are the marks, and a curve has those of its scale", () => {
  const marks = (unit: string, xs: number[]) => {
    const x = { title: "batch", unit, logarithmic: true };
    const curves = [
      {
        label: "",
        form: "points" as const,
        mark: null,
        below: null,
        points: xs.map((at) => [at, 1] as [number, number]),
      },
    ];
    return marksAlong({ x, y: x, curves, limits: [] }, scaleOf(x, xs));
  };
  expect(marks("count", [32, 1, 8, 64, 8])).toEqual([1, 8, 32, 64]);
  expect(marks("count", [32])).toEqual([32]);
  expect(marks("Mpps", [1, 8, 32])).toEqual([1, 2, 5, 10, 20, 50]);
  expect(marks("count", [1, 8, 9])).toEqual([1, 2, 5, 10]);
  expect(marks("count", [0.5, 8])).toEqual([0.5, 1, 2, 5, 10]);
  expect(marks("count", [])).toEqual([1, 2, 5, 10]);
});
