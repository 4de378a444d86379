import { expect, test } from "vitest";
import { marksNear } from "./picture";

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
