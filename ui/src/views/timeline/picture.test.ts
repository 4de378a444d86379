import { expect, test } from "vitest";
import { marksNear, widened } from "./picture";

const window = { t0: 0, t1: 1_000_000 };

test("a mark is told where its triangle is, with its time", () => {
  const markers = [
    { lane: null, at_ns: 500_000, label: "guest stopped" },
    { lane: null, at_ns: 503_000, label: "guest runs on the target" },
  ];
  // A pixel is 1,000 ns.
  expect(marksNear(markers, 495_000, window, 1_000)).toEqual(["guest stopped, 0.000500 s"]);
  expect(marksNear(markers, 502_000, window, 1_000)).toHaveLength(2);
  expect(marksNear(markers, 494_000, window, 1_000)).toEqual([]);
});

test("of very many marks in one place the first are told", () => {
  const markers = Array.from({ length: 20 }, (_, i) => ({ lane: null, at_ns: i, label: `loss ${i}` }));
  expect(
    marksNear(markers, 0, window, 1_000)
      .map((said) => said.split(",")[0])
      .at(-1),
  ).toBe("loss 7");
});

test("a slice that is narrower than one finds is marked wider, around its middle, and others as they are", () => {
  const short = { t0: 500_000, t1: 500_200 };
  const wide = widened(short, window, 1_000);
  expect(wide.t1 - wide.t0).toBeGreaterThanOrEqual(4_000);
  expect((wide.t0 + wide.t1) / 2).toBe(500_100);
  const long = { t0: 100_000, t1: 300_000 };
  expect(widened(long, window, 1_000)).toBe(long);
});
