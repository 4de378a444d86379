import { describe, expect, it } from "vitest";
import { numbersOf, type Wanted } from "./lanes";
import type { Recording } from "./source";
import { emptyTile } from "./tile";
import { levelFor, placesOf, TILE_PIXELS, TileCache } from "./tiles";

describe("places", () => {
  it("cover the window and no more", () => {
    for (const [t0, t1] of [
      [0, 1],
      [0, 512],
      [511, 513],
      [5000, 900_000],
    ] as const) {
      const level = levelFor((t1 - t0) / 800);
      const span = TILE_PIXELS * 2 ** level;
      const places = placesOf(level, t0, t1);
      expect(places[0]! * span).toBeLessThanOrEqual(t0);
      expect((places.at(-1)! + 1) * span).toBeGreaterThanOrEqual(t1);
      expect(places.length).toBeLessThanOrEqual(Math.ceil((t1 - t0) / span) + 1);
    }
  });
});

describe("the cache", () => {
  const settled = () => new Promise((done) => setTimeout(done, 0));
  const made = () => {
    const asked: { t0: number; t1: number; width: number; lanes: number[]; means: number }[] = [];
    const recording = {
      timeline: { span: { from_ns: 0, to_ns: 1 << 20 } },
      tile: async (t0: number, t1: number, width: number, wanted: Wanted) => {
        asked.push({ t0, t1, width, lanes: wanted.lanes, means: wanted.means.length });
        return emptyTile(t0, t1, width, 1, numbersOf(wanted));
      },
    } as unknown as Recording;
    return { asked, cache: new TileCache(recording, () => undefined) };
  };
  const lanes = (...some: number[]): Wanted => ({ lanes: some, means: [] });

  it("asks once, keeps, and stretches a coarse tile while a finer one is on its way", async () => {
    const { asked, cache } = made();
    expect(cache.window(0, 1 << 20, 2048, lanes(0))).toEqual([]);
    await settled();
    expect(cache.window(0, 1 << 20, 2048, lanes(0))).toHaveLength(1);
    expect(asked).toHaveLength(1);
    const finer = cache.window(0, 1 << 10, 2, lanes(0));
    expect(finer.map((tile) => tile.t1 - tile.t0)).toEqual([1 << 20]);
  });

  it("asks for all lanes and all places of a window in one request, and then for what is new alone", async () => {
    const { asked, cache } = made();
    cache.window(0, 1 << 12, 2, { lanes: [0, 1, 2], means: [[8, 9]] });
    expect(asked).toEqual([{ t0: 0, t1: 5120, width: 2560, lanes: [0, 1, 2], means: 1 }]);
    await settled();
    cache.window(0, 1 << 12, 2, lanes(1, 2, 3), lanes(0, 1, 2, 3, 4));
    expect(asked.slice(1)).toEqual([{ t0: 0, t1: 5120, width: 2560, lanes: [3, 4], means: 0 }]);
    await settled();
    const found = cache.window(0, 1 << 12, 2, lanes(4));
    expect(asked).toHaveLength(2);
    expect(found.map((tile) => tile.lanes.length)).toEqual([6, 6, 6, 6]);
  });
});
