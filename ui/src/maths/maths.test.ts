import { describe, expect, it } from "vitest";
import type { Table } from "../data/types";
import { bandsOf, stops } from "./flow";
import { duration, instant, percent, runs } from "./format";
import { arc, fitColumns, nice } from "./gauges";
import { heading, labels, spread } from "./ladder";
import { heat, marks, ninesPlace, quantile } from "./quantile";
import { csv, matches, sorted } from "./rows";
import { clamp, pan, ticks, zoom } from "./window";

const WHOLE = { t0: 0, t1: 1_000_000 };

describe("the window", () => {
  it("keeps the point under the pointer while it zooms", () => {
    const zoomed = zoom({ t0: 100_000, t1: 300_000 }, 150_000, 0.5, WHOLE);
    expect((150_000 - zoomed.t0) / (zoomed.t1 - zoomed.t0)).toBeCloseTo(0.25, 6);
  });

  it("never leaves the recording and never vanishes", () => {
    expect(pan({ t0: 900_000, t1: 1_000_000 }, 3, WHOLE)).toEqual({ t0: 900_000, t1: 1_000_000 });
    expect(
      zoom({ t0: 10, t1: 110 }, 50, 1e-9, WHOLE).t1 - zoom({ t0: 10, t1: 110 }, 50, 1e-9, WHOLE).t0,
    ).toBe(100);
    expect(clamp({ t0: -5e9, t1: 5e9 }, WHOLE)).toEqual(WHOLE);
    expect(clamp({ t0: 0, t1: 10 }, { t0: 0, t1: 1 })).toEqual({ t0: 0, t1: 1 });
  });

  it("has round ticks inside it", () => {
    const { step, at } = ticks({ t0: 130, t1: 1230 }, 6);
    expect(step).toBe(200);
    expect(at).toEqual([200, 400, 600, 800, 1000, 1200]);
  });
});

describe("numbers for people", () => {
  it("have a unit and three figures", () => {
    expect([0, 7, 1234, 41_600, 2_454_060_065].map(duration)).toEqual([
      "0 ns",
      "7 ns",
      "1.23 us",
      "41.6 us",
      "2.45 s",
    ]);
    expect([0, 0.0004, 0.382].map(percent)).toEqual(["0.0 %", "<0.1 %", "38.2 %"]);
    expect(instant(1_500_000_000, 1e8)).toBe("1.5 s");
  });
});

describe("a chain", () => {
  it("is said in one line", () => {
    const sequence = [...Array(8).fill("VMREAD"), "CPUID", ...Array(5).fill("VMWRITE"), "VMRESUME"];
    expect(heading({ exits: 15, sequence })).toBe("1 L2 exit = 15 L1 exits, 8 of them VMREAD");
    expect(heading({ exits: 1, sequence: ["VMRUN"] })).toBe("1 L2 exit = 1 L1 exit");
    expect(runs(sequence).map((run) => run.count)).toEqual([8, 1, 5, 1]);
  });

  it("gives an exit all of L0's time for it", () => {
    const span = (lane: string, detail: string, from_ns: number, to_ns: number) => ({
      name: "",
      title: "",
      lane,
      detail,
      from_ns,
      to_ns,
    });
    const spans = [
      span("L0", "CPUID", 0, 20),
      span("L0", "", 20, 50),
      span("L1", "", 50, 60),
      span("L0", "VMREAD", 60, 70),
    ];
    expect(labels(spans).map((it) => [it.text, it.spent_ns])).toEqual([
      ["CPUID", 50],
      ["VMREAD", 10],
    ]);
  });

  it("has labels that do not lie on each other", () => {
    const places = spread([0, 1, 2, 90, 99, 100], 10, 100);
    for (let i = 1; i < places.length; i++) expect(places[i]! - places[i - 1]!).toBeGreaterThanOrEqual(10);
    expect(Math.max(...places)).toBeLessThanOrEqual(100);
  });
});

describe("distributions", () => {
  it("have the quantiles of a sorted list", () => {
    const values = Array.from({ length: 100 }, (_, i) => i + 1);
    expect([0, 0.5, 0.99, 1].map((share) => quantile(values, share))).toEqual([1, 50, 99, 100]);
    expect(quantile([], 0.5)).toBe(0);
    expect(ninesPlace(0.99, 3)).toBeCloseTo(2 / 3, 9);
    expect(marks(900, 3000)).toEqual([1000, 2000]);
  });

  it("lose no sample of the window in a heat map", () => {
    const samples = Array.from({ length: 500 }, (_, i) => ({ at: i, size: 1 + ((i * 7919) % 10_000) }));
    const grid = heat(samples, 100, 300, 13, 9);
    expect(grid.counts.reduce((a, b) => a + b, 0)).toBe(200);
  });
});

const SEQUENCES: Table = {
  columns: ["vm", "reason", "sequence", "exits", "count"].map((name) => ({
    name,
    unit: "",
    type: "",
    key: true,
  })),
  rows: [
    ["a", "MSR", "VMLOAD x2, STGI, VMRUN", 4, 10],
    ["a", "HLT", "VMRUN", 1, 3],
  ],
};

describe("multiplication", () => {
  it("counts every exit of every sequence once", () => {
    const bands = bandsOf(SEQUENCES);
    expect(bands.find((band) => band.from === "MSR" && band.to === "VMLOAD")?.value).toBe(20);
    expect(bands.reduce((sum, band) => sum + band.value, 0)).toBe(43);
    const right = [...stops(bands, "to", 200, 10).values()];
    const last = right.at(-1)!;
    expect(last.top + last.height).toBeCloseTo(200, 6);
  });
});

describe("tables", () => {
  const rows = [
    { level: "L1", reason: "VMREAD", count: 5 },
    { level: "L2", reason: "CPUID", count: null },
    { level: "L1", reason: "MSR", count: 9 },
  ];

  it("are filtered by words and by column", () => {
    expect(rows.filter((row) => matches(row, "l1 vm"))).toHaveLength(1);
    expect(rows.filter((row) => matches(row, "level:l2"))).toHaveLength(1);
    expect(rows.filter((row) => matches(row, " "))).toHaveLength(3);
  });

  it("are sorted with missing values last", () => {
    expect(sorted(rows, "count", true).map((row) => row.count)).toEqual([9, 5, null]);
    expect(sorted(rows, "count", false).map((row) => row.count)).toEqual([5, 9, null]);
  });

  it("leave as CSV with what needs quotes in quotes", () => {
    expect(csv(["a"], [['say "x", y'], [null]])).toBe('a\r\n"say ""x"", y"\r\n\r\n');
  });
});

describe("dials", () => {
  it("end at a round number and sweep 270 degrees", () => {
    expect([0, 0.3, 7, 41, 600].map(nice)).toEqual([1, 0.5, 10, 50, 1000]);
    expect(arc(0, 1, 10)).toContain("A10 10 0 1 1");
  });

  it("fill a wall of any shape", () => {
    expect(fitColumns(12, 1600, 750)).toBe(6);
    expect(fitColumns(12, 400, 2000)).toBe(2);
    expect(fitColumns(1, 400, 300)).toBe(1);
  });
});
