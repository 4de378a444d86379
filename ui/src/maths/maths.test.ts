import { describe, expect, it } from "vitest";
import { emptyTile } from "../data/tile";
import type { Table } from "../data/types";
import { apart, type Curve, curveOfBins, curveOfShares, pathOf, rangeOf } from "./curve";
import {
  amount,
  bitsPerSecond,
  duration,
  fixed,
  instant,
  marksOf,
  minute,
  packetsPerSecond,
  percent,
  placed,
  roundAmount,
  roundDuration,
  runs,
  shellWord,
} from "./format";
import { fitColumns, nice, ofChains, seriesOf } from "./gauges";
import { disturbance, folded, heading, labels, spread, visible } from "./ladder";
import { bandsOf, ribbons, stops, undisturbedChains } from "./multiplication";
import { marks, ninesPlace, shareAt } from "./quantile";
import { csv, matches, pressed, sorted, tableOf } from "./rows";
import { clamp, pan, ticks, zoom } from "./window";

const WHOLE = { t0: 0, t1: 1_000_000 };

describe("numbers", () => {
  it("are rounded as the sentences of the report", () => {
    // base::number prints the same: `format!("{:.1}", 78.25)` is 78.2, and 1.15 lies below the middle.
    expect([0.7825, 0.7828, 0.7775].map(percent)).toEqual(["78.2 %", "78.3 %", "77.8 %"]);
    expect([fixed(0.5, 0), fixed(1.5, 0), fixed(-78.25, 1), fixed(0.125, 2)]).toEqual([
      "0",
      "2",
      "-78.2",
      "0.12",
    ]);
    expect([duration(1_150_000), duration(78_250)]).toEqual(["1.1 ms", "78.2 us"]);
    expect(packetsPerSecond(1_125_000)).toBe("1.12 Mpps");
  });
});

describe("the window", () => {
  it("has two times on its axis at least, however narrow that is", () => {
    // A step of 0.5 s fits twice into 0.6 s, and a window from 0.3 s on holds one of them.
    expect(ticks({ t0: 300e6, t1: 900e6 }, 2)).toEqual({ step: 200e6, at: [400e6, 600e6, 800e6] });
    expect(ticks({ t0: 0, t1: 638e6 }, 2)).toEqual({ step: 500e6, at: [0, 500e6] });
    for (let t0 = 0; t0 < 3e9; t0 += 1e8 / 3)
      expect(ticks({ t0, t1: t0 + 700e6 }, 2).at.length).toBeGreaterThan(1);
  });

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
  it("of packets have two digits, and the small ones more", () => {
    expect([8.615e6, 1e6, 40_000, 0].map(packetsPerSecond)).toEqual([
      "8.62 Mpps",
      "1.00 Mpps",
      "0.04 Mpps",
      "0 Mpps",
    ]);
    expect(bitsPerSecond(2.4e7)).toBe("0.024 Gb/s");
  });
  it("have a unit and three figures", () => {
    expect([0, 7, 1234, 41_600, 2_454_060_065].map(duration)).toEqual([
      "0 ns",
      "7 ns",
      "1.2 us",
      "41.6 us",
      "2.5 s",
    ]);
    expect([0, 0.0004, 0.382, 0.9999, 1].map(percent)).toEqual([
      "0 %",
      "<0.1 %",
      "38.2 %",
      ">99.9 %",
      "100 %",
    ]);
    expect(roundDuration(1e8)).toBe("100 ms");
    // As base::number has them: what took less than a nanosecond still took something.
    expect([439.13, 1.884, 0.26].map(duration)).toEqual(["439.1 ns", "1.88 ns", "0.26 ns"]);
    expect([0.5, 1.5, 2, 0.1].map((value) => roundAmount(value, "Mpps"))).toEqual(["0.5", "1.5", "2", "0.1"]);
    expect([0.0845, 0.5, 3].map((value) => amount(value, "Mpps"))).toEqual(["0.0845", "0.50", "3"]);
    expect([999, 999_949, 999_960, 1.050624e14].map(duration)).toEqual([
      "999 ns",
      "999.9 us",
      "1.0 ms",
      "1.2 days",
    ]);
    expect(instant(1_500_000_000, 1e8)).toBe("1.5 s");
    const marks = (t0: number, t1: number, step: number, ...at: number[]) => {
      const { base, of } = marksOf(t0, t1, step);
      return [base, ...at.map(of)];
    };
    expect(marks(0, 2.4e9, 5e8, 0, 1.5e9)).toEqual(["", "0 s", "1.5 s"]);
    expect(marks(0, 100, 20, 0, 60)).toEqual(["", "0 ns", "60 ns"]);
    expect(marks(0, 1.79e11, 2e10, 1.2e11)).toEqual(["", "120 s"]);
    expect(marks(4e6, 4.8e6, 1e5, 4.5e6)).toEqual(["", "4.5 ms"]);
    expect(marks(1_234_567_890, 1_234_568_890, 200, 1_234_568_000)).toEqual(["1.234567 s", "+1,000 ns"]);
    expect(placed(60, 100)).toBe("60 ns");
    expect(placed(1_234_567_890, 1_000)).toBe("1.234567890 s");
  });
});

describe("a chain", () => {
  it("is said in one line", () => {
    const sequence = [...Array(8).fill("VMREAD"), "CPUID", ...Array(5).fill("VMWRITE"), "VMRESUME"];
    expect(heading({ exits: 15, most: ["VMREAD", 8] })).toBe("1 L2 exit = 15 L1 exits, 8 of them VMREAD");
    expect(heading({ exits: 2538, most: ["MSR", 1441] })).toBe(
      "1 L2 exit = 2,538 L1 exits, 1,441 of them MSR",
    );
    expect(heading({ exits: 1, most: ["VMRUN", 1] })).toBe("1 L2 exit = 1 L1 exit");
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

  it("keeps L2's exit and L1's own for one reason apart", () => {
    const span = (name: string, from_ns: number) => ({
      name,
      title: "",
      lane: "L0",
      detail: "CPUID",
      from_ns,
      to_ns: from_ns + 10,
    });
    const both = labels([span("handling_l2", 0), span("handling_l1", 10)]);
    expect(both.map((it) => [it.text, it.count])).toEqual([
      ["CPUID", 1],
      ["CPUID", 1],
    ]);
  });

  it("is folded in its middle where it has thousands of rungs, and loses none of them", () => {
    const all = Array.from({ length: 2538 }, (_, i) => ({
      text: `R${i}`,
      state: "handling_l1",
      count: 1,
      from_ns: i,
      to_ns: i + 1,
      spent_ns: 1,
    }));
    const short = folded(all);
    expect(short).toHaveLength(41);
    expect(short[20]!.text).toBe("… 2,498 exits");
    expect(short.reduce((sum, label) => sum + label.spent_ns, 0)).toBe(2538);
    const rails = all.map((label) => ({ ...label, name: "", title: "", lane: "L0", detail: "" }));
    expect(visible(rails, 100)).toHaveLength(26);
  });

  it("is flagged where its cost is not that of one exit", () => {
    expect(disturbance({ interrupted: true, migrated: false })).toBe("L1 halted");
    expect(disturbance({ interrupted: false, migrated: false })).toBe("");
  });

  it("has labels that do not lie on each other", () => {
    const places = spread([0, 1, 2, 90, 99, 100], 10, 100);
    for (let i = 1; i < places.length; i++) expect(places[i]! - places[i - 1]!).toBeGreaterThanOrEqual(10);
    expect(Math.max(...places)).toBeLessThanOrEqual(100);
  });
});

describe("distributions", () => {
  it("have places on an axis of nines, and round marks", () => {
    expect(ninesPlace(0.99, 3)).toBeCloseTo(2 / 3, 9);
    expect(marks(900, 3000)).toEqual([1000, 2000]);
    expect(marks(2_100, 4_900)).toEqual([2_100, 4_900]);
    expect(
      shareAt(
        [
          [0, 1],
          [0.5, 7],
          [1, 9],
        ],
        0.5,
      ),
    ).toBe(7);
  });

  it("of exits are steps at the ends of their bins: nothing is drawn that was not measured", () => {
    const bins = [
      { from: 1024, to: 1536, count: 3 },
      { from: 4096, to: 8192, count: 2 },
    ];
    const [curve] = curveOfBins("L1 MSR", bins, 5000);
    expect(curve!.points).toEqual([
      [0.6, 1536],
      [0.9, 5000],
    ]);
    expect(curveOfBins("none", [], 0)).toEqual([]);
  });

  it("have no axis where no value is above zero, and never one of no height", () => {
    expect(rangeOf([])).toBeNull();
    expect(rangeOf(curveOfShares("chains", [[0.5, 0]], 1))).toBeNull();
    expect(rangeOf(curveOfShares("chains", [[0.5, 1000]], 1))).toEqual({ from: 1000, to: 10_000 });
  });
});

const EXITS = [
  { vm: "a", reason: "MSR", l1_reason: "VMLOAD", count: 20 },
  { vm: "a", reason: "MSR", l1_reason: "VMRUN", count: 10 },
  { vm: "b", reason: "MSR", l1_reason: "VMRUN", count: 10 },
  { vm: "a", reason: "HLT", l1_reason: "VMRUN", count: 3 },
];

describe("multiplication", () => {
  it("counts every exit once, over all VMs", () => {
    const bands = bandsOf(EXITS);
    expect(bands.find((band) => band.from === "MSR" && band.to === "VMRUN")?.value).toBe(20);
    expect(bands.reduce((sum, band) => sum + band.value, 0)).toBe(43);
    const right = [...stops(bands, "to", 200, 10).values()];
    const last = right.at(-1)!;
    expect(last.top + last.height).toBeCloseTo(200, 6);
  });

  it("fills every stop with its ribbons, none over another", () => {
    const bands = bandsOf(EXITS);
    const [from, to] = [stops(bands, "from", 200, 10), stops(bands, "to", 200, 10)];
    const all = ribbons(bands, from, to);
    expect(all.length).toBe(bands.length);
    for (const [name, stop] of to) {
      const here = all.filter(({ band }) => band.to === name).map(({ right }) => right);
      expect(here[0]![0]).toBeCloseTo(stop.top, 6);
      expect(here.at(-1)![1]).toBeCloseTo(stop.top + stop.height, 6);
      for (const [i, [top]] of here.slice(1).entries()) expect(top).toBeCloseTo(here[i]![1], 6);
    }
  });

  it("counts chains that ended and that nothing disturbed, over all VMs", () => {
    const chains = [
      { vm: "a", reason: "MSR", count: 9, censored: 1, disturbed: 1 },
      { vm: "b", reason: "MSR", count: 3, censored: 0, disturbed: 0 },
      { vm: "b", reason: "HLT", count: 2, censored: 2, disturbed: 0 },
    ];
    expect([...undisturbedChains(chains)]).toEqual([
      ["MSR", 10],
      ["HLT", 0],
    ]);
  });
});

describe("curves", () => {
  it("are lines between exact quantiles and steps at the ends of bins", () => {
    const points: [number, number][] = [
      [0.5, 10],
      [1, 20],
    ];
    const scale = (value: number) => value * 10;
    const curve = { title: "", count: 2, points };
    const exact: Curve = { ...curve, whole: true, points: [...curve.points, [1, 9000]] };
    expect(pathOf(exact, scale, scale), "no line to the longest one").toBe("M5.0 100.0L10.0 200.0");
    expect(pathOf({ ...curve, whole: false }, scale, scale)).toBe("M0 100.0H5.0V200.0H10.0");
  });

  it("have labels that do not overlap, each at its end or below", () => {
    expect(apart([50, 10, 52, 51], 15)).toEqual([50, 10, 80, 65]);
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
  it("are sorted the other way when a head is pressed again, words as well as numbers", () => {
    const count = pressed(null, "count", false);
    expect(count.descending).toBe(true);
    expect(pressed(count, "count", false).descending).toBe(false);
    const reason = pressed(count, "reason", true);
    expect(reason.descending).toBe(false);
    expect(pressed(reason, "reason", true).descending).toBe(true);
  });

  it("are taken from the section that is meant", () => {
    const table = (name: string): Table => ({ columns: [{ name, unit: "", type: "", key: true }], rows: [] });
    const report = {
      sections: [
        { id: "bench", tables: { exits: table("cycles") } },
        { id: "flow", tables: { exits: table("total_ns") } },
      ],
    } as never;
    expect(tableOf(report, "flow.exits")?.columns[0]?.name).toBe("total_ns");
    expect(tableOf(report, "flow.chains")).toBeUndefined();
  });

  it("leave as CSV that no spreadsheet calculates, with numbers as they are", () => {
    const cells = ["=HYPERLINK(1)", "+1", "-x", "@a", "\tb", "plain"];
    expect(
      csv(
        ["a"],
        cells.map((cell) => [cell]),
      ),
    ).toBe("a\r\n'=HYPERLINK(1)\r\n'+1\r\n'-x\r\n'@a\r\n'\tb\r\nplain\r\n");
    expect(csv(["a"], [[-1.5]])).toBe("a\r\n-1.5\r\n");
  });

  it("leave as CSV with what needs quotes in quotes", () => {
    expect(csv(["a"], [['say "x", y'], [null]])).toBe('a\r\n"say ""x"", y"\r\n\r\n');
  });
});

describe("points in time", () => {
  it("are given to the minute, in the zone that they are in", () => {
    expect(minute("2026-11-22T10:42:03Z")).toBe("2026-11-22 10:42 UTC");
    expect(minute("last Sunday")).toBe("last Sunday");
  });
});

describe("gauges", () => {
  const sums = {
    chains: 14,
    t0_ns: 0,
    t1_ns: 4e9,
    slots: {
      back: 2,
      chains: [10, 0, 0, 4],
      undisturbed: [10, 0, 0, 2],
      exits: [90, 0, 0, 8],
      p99_ns: [7, 7, null, 5],
    },
  };

  it("show rates of all chains, and a dash where the cost of one is unknown", () => {
    const [rate, exits, tail] = ofChains(sums as never, [true]);
    expect(rate!.values).toEqual([10, 5, 0, 2]);
    expect(exits!.values).toEqual([9, 9, null, 4]);
    expect(tail!.values).toEqual([7, 7, null, 5]);
  });

  it("show a dash and not 0 where all of the time before is unknown", () => {
    const tile = emptyTile(0, 4e9, 4, 2, [0]);
    tile.lanes[0]!.cover.set([255, 0, 0, 255, 0, 255, 0, 255]);
    const states = [
      { name: "guest_l1", title: "" },
      { name: "unknown", title: "" },
    ];
    const [guest, unknown, rate] = seriesOf(tile, [0], states, sums as never, 2);
    expect(guest!.values).toEqual([1, 0.5, null, null]);
    expect(unknown!.values).toEqual([0, 0.5, 1, 1]);
    expect(rate!.values).toEqual([10, 5, null, null]);
  });

  it("never show unknown time as time off the CPU", () => {
    const tile = emptyTile(0, 100, 1, 2, [0]);
    tile.lanes[0]!.cover.set([89, 166]);
    const states = [
      { name: "guest_l1", title: "" },
      { name: "unknown", title: "" },
    ];
    const titles = seriesOf(tile, [0], states, null, 1).map((it) => it.title);
    expect(titles).toEqual(["L1 guest", "unknown"]);
  });
});

describe("walls of gauges", () => {
  it("end at a round number", () => {
    expect([0, 0.3, 7, 41, 600, 1.96].map(nice)).toEqual([1, 0.3, 7, 50, 600, 2]);
    for (let most = 1e-3; most < 1e6; most *= 1.013) {
      expect(nice(most)).toBeGreaterThanOrEqual(most);
      expect(nice(most)).toBeLessThanOrEqual(1.25 * most * (1 + 1e-9));
    }
  });

  it("fill a wall of any shape", () => {
    expect(fitColumns(12, 1600, 750)).toBe(4);
    expect(fitColumns(12, 400, 2000)).toBe(1);
    expect(fitColumns(1, 400, 300)).toBe(1);
  });
});

describe("a word for a shell", () => {
  it("is quoted where it is more than a plain name", () => {
    expect(shellWord("FLW-PREEMPT@web/0-3")).toBe("FLW-PREEMPT@web/0-3");
    expect(shellWord("X@it's; rm -rf ~")).toBe("'X@it'\\''s; rm -rf ~'");
  });
});
