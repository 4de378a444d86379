import { expect, test } from "vitest";
import { freest } from "./labels";

const box = (x: number, y: number) => ({ x, y, width: 20, height: 10 });

test("words stand where no line and no other word is", () => {
  const line: [number, number][] = [
    [0, 0],
    [100, 50],
  ];
  // The line passes through (40, 20), and by (40, 40) and (70, 5).
  expect(freest([box(40, 20), box(40, 40), box(70, 5)], [line], [])).toBe(1);
  expect(freest([box(40, 20), box(40, 40), box(70, 5)], [line], [box(45, 45)])).toBe(2);
  expect(freest([box(40, 40), box(70, 5)], [line], [])).toBe(0);
});

test("a line that ends before the words, or is one point, hides none", () => {
  const short: [number, number][] = [
    [0, 25],
    [30, 25],
  ];
  expect(freest([box(20, 20), box(40, 20)], [short], [])).toBe(1);
  expect(freest([box(40, 20), box(70, 20)], [[[45, 25]]], [])).toBe(1);
});
