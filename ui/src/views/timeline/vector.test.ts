import { describe, expect, it } from "vitest";
import { emptyTile } from "../../data/tile";
import type { Timeline } from "../../data/types";
import { escaped } from "../../draw/markup";
import { coverPaths } from "./vector";

describe("the timeline as vectors", () => {
  it("has boxes whose areas are the shares", () => {
    const tile = emptyTile(0, 1000, 10, 2, [0]);
    for (let x = 0; x < 10; x++) tile.lanes[0]!.cover.set([51 * (x % 5), 255 - 51 * (x % 5)], x * 2);
    const timeline = {
      states: [
        { name: "guest_l2", title: "" },
        { name: "halted", title: "" },
      ],
    } as Timeline;
    const scene = { timeline, window: { t0: 0, t1: 1000 } };
    const paths = coverPaths([tile], 0, scene, { top: 7, height: 100 }, 10);
    const area = (path: string) =>
      [...path.matchAll(/h1v([\d.]+)/g)].reduce((sum, [, high]) => sum + Number(high), 0);
    expect(paths.map(({ name }) => name)).toEqual(["guest_l2", "halted"]);
    expect(area(paths[0]!.path)).toBeCloseTo(400, 6);
    expect(area(paths[1]!.path)).toBeCloseTo(600, 6);
    expect(paths[0]!.path.startsWith("M1 7h1v20")).toBe(true);
  });

  it("lets no name become markup", () => {
    expect(escaped('<script>"&')).toBe("&lt;script&gt;&quot;&amp;");
  });
});
