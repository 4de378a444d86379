import { expect, test } from "vitest";
import type { Hop, Stop } from "../data/types";
import { ABOVE, BELOW, END, lineOf, placesOf, TILE_WIDTH, thickness } from "./flow";

const stop = (side: Stop["side"]): Stop => ({ label: "VNF 1", side, share: null });
const hop = (from: Stop["side"], to: Stop["side"], crossings: number): Hop => ({
  path: "sriov",
  from: stop(from),
  to: stop(to),
  above: null,
  below: "card",
  pps: 1e6,
  bits_per_s: 5e9,
  fullest: null,
  fullness: "free",
  crossings,
  count: 1,
});

test("a line crosses the boundary as often as its hop, and ends where the next one begins", () => {
  for (const [from, to, crossings] of [
    ["below", "above", 1],
    ["above", "below", 1],
    ["above", "above", 2],
    ["above", "above", 0],
    ["below", "below", 2],
  ] as const) {
    const line = lineOf(hop(from, to, crossings), false, 4);
    expect(line.crossings).toHaveLength(crossings);
    expect(line.data).toMatch(new RegExp(`^M0 ${from === "above" ? ABOVE : BELOW}`));
    expect(line.head).toContain(` ${to === "above" ? ABOVE : BELOW}l`);
  }
});

test("boxes of a tile do not lie on its station", () => {
  for (const [from, to] of [
    ["below", "above"],
    ["above", "below"],
    ["above", "above"],
  ] as const) {
    const { above, below } = placesOf(hop(from, to, 1));
    for (const [left, right] of [above, below]) expect(left >= 0 && left < right && right < END).toBe(true);
  }
  expect(2 * TILE_WIDTH).toBeLessThanOrEqual(358);
});

test("lines grow with their load, up to the most", () => {
  expect([0, 5, 10, 99].map((load) => thickness(load, 10))).toEqual([2, 7, 12, 12]);
  expect(thickness(1, 0)).toBe(2);
});
