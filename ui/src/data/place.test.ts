import { describe, expect, it } from "vitest";
import { placeOf } from "./place";
import type { Recording } from "./source";
import { emptyTile, type Tile } from "./tile";
import type { About, Slice, Timeline } from "./types";

const [GUEST, PREEMPTED] = [0, 1];
const TO = 2_048_000;
/** When a vCPU is preempted, and for how long, in ns; a pixel is 1,000 ns. */
const WAITS = [
  [100_000, 40_000],
  [300_500, 41_900],
  [500_000, 80_000],
  // Longer than the one before by 400 ns, which no pixel tells.
  [700_300, 80_400],
  [900_000, 300],
  [1_100_000, 80_000],
] as const;

function slicesOf(waits: readonly (readonly [number, number])[]): Slice[] {
  const out: Slice[] = [];
  let at = 0;
  const put = (to_ns: number, state: number) => {
    if (to_ns > at)
      out.push({ from_ns: at, to_ns, state, detail: "", index: out.length } as unknown as Slice);
    at = to_ns;
  };
  for (const [from, length] of waits) {
    put(from, GUEST);
    put(from + length, PREEMPTED);
  }
  put(TO, GUEST);
  return out;
}

/** A recording of two vCPUs, drawn as the server draws it. */
function recordingOf(each: Slice[][], asked: string[] = []): Recording {
  const lanes = each.map((slices, id) => ({
    id,
    kind: "vcpu",
    group: "vm",
    title: `vCPU ${id}`,
    tid: 10 + id,
    slices: slices.length,
    chains: 0,
  }));
  const states = ["guest", "preempted"].map((name) => ({ name, title: name }));
  const inside = (lane: number, t0: number, t1: number) =>
    each[lane]!.filter((one) => one.to_ns > t0 && one.from_ns < t1);
  return {
    timeline: { lanes, states, span: { from_ns: 0, to_ns: TO } } as unknown as Timeline,
    async tile(t0: number, t1: number, width: number, wanted: { lanes: number[] }): Promise<Tile> {
      const tile = emptyTile(t0, t1, width, states.length, wanted.lanes);
      const wide = (t1 - t0) / width;
      for (const lane of tile.lanes) {
        for (let pixel = 0; pixel < width; pixel++) {
          const [from, to] = [t0 + pixel * wide, t0 + (pixel + 1) * wide];
          const here = inside(lane.lane, from, to);
          for (const { state, from_ns, to_ns } of here)
            lane.cover[pixel * 2 + state]! += Math.round(
              (255 * (Math.min(to, to_ns) - Math.max(from, from_ns))) / wide,
            );
          lane.count[pixel] = here.length;
          const longest = here.reduce((a, b) => (b.to_ns - b.from_ns > a.to_ns - a.from_ns ? b : a));
          lane.longest[pixel] = longest.index;
        }
      }
      return tile;
    },
    async slices([lane]: number[], t0: number, t1: number) {
      asked.push(`${lane}: ${t0} to ${t1}`);
      return new Map([[lane!, { slices: inside(lane!, t0, t1), left_out: 0 }]]);
    },
    async chains() {
      return { chains: [], total: 0 };
    },
  } as unknown as Recording;
}

const preempted: About[] = [{ kind: "state", state: "preempted" } as About];

describe("where a state is seen", () => {
  it("is its longest slice, not the first of many pixels that are full of it", async () => {
    const asked: string[] = [];
    const place = await placeOf(
      recordingOf([slicesOf(WAITS.slice(0, 2)), slicesOf(WAITS)], asked),
      preempted,
    );
    expect([place?.t0, place?.t1]).toEqual([700_300, 780_700]);
    expect(place?.words).toContain("preempted for 80.4 us");
    // Those that cannot be it are not asked for.
    expect(asked).toHaveLength(3);
    expect(asked.every((one) => one.startsWith("1:"))).toBe(true);
  });

  it("is the longest one where all of them are shorter than a pixel", async () => {
    const short = Array.from({ length: 60 }, (_, i) => [10_000 + i * 5_000, i === 41 ? 390 : 180] as const);
    const place = await placeOf(recordingOf([slicesOf(short)]), preempted);
    expect([place?.t0, place?.t1]).toEqual([10_000 + 41 * 5_000, 10_390 + 41 * 5_000]);
  });

  it("is named by the pixels where a source has no single slices", async () => {
    const waits = [...WAITS.slice(0, 3), [700_300, 90_000] as const];
    const recording = { ...recordingOf([slicesOf(waits)]), slices: async () => new Map() };
    const place = await placeOf(recording as unknown as Recording, preempted);
    expect(place!.t0).toBeGreaterThan(699_000);
    expect(place!.t1).toBeLessThan(792_000);
    expect(place!.words).toContain('Most of "preempted"');
  });
});

it("a reason is seen in its longest slice on any lane, not on the first that has one", async () => {
  const named = (slices: Slice[]) =>
    slices.map((one) => ({ ...one, detail: one.state === PREEMPTED ? "MSR" : "" }));
  const recording = recordingOf([named(slicesOf(WAITS.slice(0, 1))), named(slicesOf(WAITS.slice(0, 3)))]);
  const place = await placeOf(recording, [{ kind: "reason", reason: "MSR" } as About]);
  expect([place?.t0, place?.t1]).toEqual([500_000, 580_000]);
});
