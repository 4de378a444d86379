import { describe, expect, it } from "vitest";
import { coverageOf, rowsFor } from "../draw/lane";
import { decodeTile, emptyTile, NONE, resample } from "./tile";

/** Two pixels, two states, one lane, written by hand from the format's description. */
function bytes(): ArrayBuffer {
  const buffer = new ArrayBuffer(32 + 4 + 2 * 2 + 2 * 4 + 2 * 2 + 2 * 4);
  const view = new DataView(buffer);
  view.setUint32(0, 0x4c54564b, true);
  view.setUint16(4, 1, true);
  view.setBigUint64(8, 1000n, true);
  view.setBigUint64(16, 3000n, true);
  view.setUint32(24, 2, true);
  view.setUint16(28, 1, true);
  view.setUint16(30, 2, true);
  view.setUint32(32, 7, true);
  new Uint8Array(buffer).set([255, 0, 100, 155], 36);
  view.setUint32(40, 0b01, true);
  view.setUint32(44, 0b11, true);
  view.setUint16(48, 1, true);
  view.setUint16(50, 9, true);
  view.setUint32(52, 3, true);
  view.setUint32(56, NONE, true);
  return buffer;
}

describe("a tile", () => {
  it("is read as it was written", () => {
    const tile = decodeTile(bytes());
    expect([tile.t0, tile.t1, tile.width, tile.states]).toEqual([1000, 3000, 2, 2]);
    const lane = tile.lanes[0]!;
    expect(lane.lane).toBe(7);
    expect([...lane.cover]).toEqual([255, 0, 100, 155]);
    expect([...lane.present]).toEqual([1, 3]);
    expect([...lane.count]).toEqual([1, 9]);
    expect([...lane.longest]).toEqual([3, NONE]);
  });

  it("that is cut, foreign or of another version is refused with a sentence", () => {
    expect(() => decodeTile(bytes().slice(0, 40))).toThrow("does not fit");
    expect(() => decodeTile(new ArrayBuffer(4))).toThrow("header");
    const foreign = bytes();
    new DataView(foreign).setUint32(0, 1, true);
    expect(() => decodeTile(foreign)).toThrow("no timeline tile");
    const newer = bytes();
    new DataView(newer).setUint16(4, 2, true);
    expect(() => decodeTile(newer)).toThrow("version 2");
  });

  it("keeps its sums when pixels are joined or split", () => {
    const tile = decodeTile(bytes());
    const joined = emptyTile(1000, 3000, 1, 2, [7]);
    resample(tile, joined);
    expect([...joined.lanes[0]!.cover]).toEqual([178, 78]);
    const outside = emptyTile(5000, 6000, 4, 2, [7]);
    resample(tile, outside);
    expect([...outside.lanes[0]!.cover].every((share) => share === 0)).toBe(true);
  });

  it("covers a screen with the same shares at every width", () => {
    const tile = decodeTile(bytes());
    for (const pixels of [1, 2, 3, 7, 50]) {
      const { share } = coverageOf([tile], 7, 1000, 3000, pixels);
      let first = 0;
      for (let p = 0; p < pixels; p++) first += share[p * 2]! / pixels;
      expect(first).toBeCloseTo((255 + 100) / 510, 3);
    }
  });

  it("of a finer level is not counted again where a coarser one lies below it", () => {
    const tile = decodeTile(bytes());
    const coarse = emptyTile(0, 8000, 2, 2, [7]);
    coarse.lanes[0]!.cover.fill(127);
    const { share } = coverageOf([coarse, tile], 7, 0, 8000, 8);
    for (let p = 0; p < 8; p++) expect(share[p * 2]! + share[p * 2 + 1]!).toBeCloseTo(1, 1);
  });
});

describe("rows of a column", () => {
  it("fill it exactly and miss a share by less than one row", () => {
    let seed = 1;
    const random = () => {
      seed = (seed * 48271) % 2147483647;
      return seed / 2147483647;
    };
    const rows = new Uint16Array(6);
    for (let round = 0; round < 300; round++) {
      const parts = Array.from({ length: 6 }, () => random() ** 3);
      const sum = parts.reduce((a, b) => a + b, 0);
      const shares = parts.map((part) => part / sum);
      const height = 1 + Math.floor(random() * 200);
      rowsFor(shares, 0, [5, 4, 3, 2, 1, 0], height, rows);
      expect(rows.reduce((a, b) => a + b, 0)).toBe(height);
      shares.forEach((share, s) => {
        expect(Math.abs(rows[s]! - share * height)).toBeLessThan(1.000001);
      });
    }
  });
});
