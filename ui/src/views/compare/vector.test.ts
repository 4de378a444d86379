import { describe, expect, it } from "vitest";
import type { Recording } from "../../data/source";
import { emptyTile } from "../../data/tile";
import type { Lane, Timeline } from "../../data/types";
import { marksOf, stripsOf } from "./strips";
import { vectorOfBoth } from "./vector";

const lane = (id: number) =>
  ({ id, kind: "vcpu", title: `vCPU ${id}`, group: "web <1>", slices: 1 }) as unknown as Lane;

function recorded(id: string, lanes: number, long: number): Recording {
  const timeline = {
    lanes: Array.from({ length: lanes }, (_, i) => lane(i)),
    states: [
      { name: "guest_l1", title: "L1 guest" },
      { name: "halted", title: "halted" },
    ],
    span: { from_ns: 500, to_ns: 500 + long },
  } as unknown as Timeline;
  return { id, timeline } as Recording;
}

/** All lanes are in the first state as often as their number says. */
function tileOf({ timeline }: Recording, long: number) {
  const ids = timeline!.lanes.map(({ id }) => id);
  const tile = emptyTile(500, 500 + long, 10, 2, ids);
  for (const { lane, cover } of tile.lanes)
    for (let x = 0; x < 10; x++) cover.set([20 * lane, 255 - 20 * lane], 2 * x);
  return tile;
}

describe("both timelines as vectors", () => {
  const window = { t0: 0, t1: 1000 };
  const [before, after] = [recorded("first", 2, 1000), recorded("second", 12, 400)];
  const sides = [before, after].map((recording) =>
    stripsOf({ recording, tile: tileOf(recording, 1000) }, window),
  );

  it("have a strip for each vCPU, and the mean of many", () => {
    expect(sides.map(({ rows }) => rows.map(({ title }) => title))).toEqual([
      ["vCPU 0", "vCPU 1"],
      ["mean of 12 vCPUs"],
    ]);
    expect(sides.map(({ ends }) => ends)).toEqual(["", "second ends after 400 ns."]);
    // Of 0 to 11.
    expect(sides[1]!.tile!.lanes[0]!.cover[0]).toBe(Math.round((20 * 66) / 12));
  });

  it("name recordings and lanes, and end where the last mark is", () => {
    const named = sides.map((strips, i) => ({
      word: ["Before", "After"][i]!,
      name: ["first", "second"][i]!,
      strips,
    }));
    const { inside, width, height } = vectorOfBoth(named, window, 100);
    for (const words of [
      "Before: first",
      "After: second",
      "vCPU 1",
      "web &lt;1&gt;",
      "mean of 12 vCPUs",
      "second ends after 400 ns.",
    ])
      expect(inside).toContain(`>${words}<`);
    expect(inside.match(/<path d="M\d+ [\d.]+h1v/g)!.length).toBe(1 + 2 + 2);
    expect(width).toBe(230);
    const lowest = Math.max(...[...inside.matchAll(/ y="([\d.]+)"/g)].map(([, y]) => Number(y)));
    expect(height).toBeGreaterThan(lowest);
  });

  it("have marks with room for their words, counted from the beginning of a window", () => {
    expect(marksOf({ t0: 0, t1: 100e6 }, 1000)[0]).toEqual({ at: 0, words: "0 ns", isLast: false });
    const narrow = marksOf({ t0: 5e6, t1: 105e6 }, 250);
    expect(narrow.length).toBeLessThanOrEqual(3);
    expect(narrow[0]!.words).toBe("+0 ns");
    expect(marksOf({ t0: 0, t1: 100e6 }, 1000).at(-1)!.isLast).toBe(true);
  });
});
