import { describe, expect, it } from "vitest";
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
  it("asks once, keeps, and stretches a coarse tile while a finer one is on its way", async () => {
    const asked: number[] = [];
    const recording = {
      timeline: { span: { from_ns: 0, to_ns: 1 << 20 } },
      tile: async (t0: number, t1: number, width: number) => {
        asked.push(t1 - t0);
        return emptyTile(t0, t1, width, 1, [0]);
      },
    } as unknown as Recording;
    const cache = new TileCache(recording, () => undefined);
    expect(cache.window(0, 1 << 20, 2048)).toEqual([]);
    await new Promise((done) => setTimeout(done, 0));
    expect(cache.window(0, 1 << 20, 2048)).toHaveLength(1);
    const before = asked.length;
    cache.window(0, 1 << 20, 2048);
    expect(asked.length).toBe(before);
    const finer = cache.window(0, 1 << 10, 2);
    expect(finer.map((tile) => tile.t1 - tile.t0)).toEqual([1 << 20]);
  });
});
