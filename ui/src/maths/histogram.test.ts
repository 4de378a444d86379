import { expect, test } from "vitest";
import { decadesOf, heightOf, placeIn, totalOf } from "./histogram";

const of = (...bins: [number, number, number[]][]) =>
  bins.map(([from, to, counts]) => ({ from, to, counts }));

test("a single one is seen beside a million and none is not", () => {
  const decades = decadesOf(of([1, 2, [1]], [2, 5, [0]], [5, 10, [999_999, 1]]));
  expect([decades, heightOf(0, decades), heightOf(1, decades), heightOf(1e6, decades)]).toEqual([
    6,
    0,
    1 / 7,
    1,
  ]);
  expect([1, 9, 10, 11].map((count) => decadesOf(of([0, 1, [count]])))).toEqual([0, 1, 1, 2]);
  expect([decadesOf([]), totalOf({ from: 0, to: 1, counts: [] })]).toEqual([0, 0]);
});

test("a limit lies between the bins that it separates", () => {
  const bins = of([1, 2, [1]], [2, 5, [0]], [5, 10, [4]], [10, 20, [1]]);
  expect([0, 1, 2, 10, 15, 20, 99].map((at) => placeIn(bins, at))).toEqual([0, 0, 0.25, 0.75, 0.875, 1, 1]);
  expect(placeIn([], 3)).toBe(0);
});
