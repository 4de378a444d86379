import { describe, expect, it } from "vitest";
import type { RateLook } from "../data/live";
import type { Report } from "../data/types";
import { figures, looksOf, ratesAt, trialWords } from "./rates";

const trial = {
  design: "ovs-dpdk",
  pattern: "chain" as const,
  vnfs: 2,
  size_bytes: 64,
  repeat: 0,
  repeats: 2,
};
const look = (number: number, more: Partial<RateLook> = {}): RateLook => ({
  number,
  from_ns: number * 5e8,
  to_ns: (number + 1) * 5e8,
  read_ns: 1e5,
  trial,
  sent_pps: 9e6,
  received_pps: 1e6,
  system_pps: 3e6,
  vnfs_pps: [2e6, 1e6],
  ceiling: null,
  published: [],
  ...more,
});

describe("gauges of a chain", () => {
  it("show all VNFs, the end of the chain, and each VNF, in Mpps and Gb/s with FCS", () => {
    const { series, index } = ratesAt([look(0), look(1)], 1);
    expect(series.map((it) => [it.title, it.unit, it.values[index]])).toEqual([
      ["all VNFs", "Mpps", 3],
      ["all VNFs", "Gb/s", 1.536],
      ["end of the chain", "Mpps", 1],
      ["sent by VNF 1", "Mpps", 2],
      ["sent by VNF 2", "Mpps", 1],
    ]);
    expect(series[3]!.also).toEqual(["1.02 Gb/s", "1.02 Gb/s"]);
    const scales = series.filter(({ unit }) => unit === "Mpps").map(({ most }) => most);
    expect(scales).toEqual(scales.map(() => 3));
  });

  it("carry a ceiling only where one is known, and published rates by VMs of their own", () => {
    expect(ratesAt([look(0)], 0).series.flatMap((it) => it.marks)).toEqual([]);
    const ceiling = { resource: "pmd", system_pps: 4e6, from: "" };
    const published = [{ point: "p", design: "sriov", vnfs: 8, system_pps: 18.5e6, source: "" }];
    const { series } = ratesAt([look(0, { ceiling, published })], 0);
    const marks = (at: number) => series[at]!.marks!.map(({ kind, value, label }) => [kind, value, label]);
    expect(marks(0)).toEqual([
      ["modelled", 4, "pmd"],
      ["published", 18.5, "sriov, 8 VMs"],
    ]);
    expect(marks(3).map((mark) => mark[1])).toEqual([2, 2.3125]);
    expect(series[0]!.most).toBe(4);
  });

  it("are those of one trial", () => {
    const next = { ...trial, repeat: 1 };
    const looks = [look(0), look(1, { trial: next, system_pps: 7e6 }), look(2, { trial: next })];
    const { series, index } = ratesAt(looks, 2);
    expect([series[0]!.values, index]).toEqual([[7, 3], 1]);
    expect(trialWords(next)).toBe("Chain of 2 VNFs on ovs-dpdk, 64 bytes, trial 2 of 2");
  });

  it("have three figures, and never 0 for what is more", () => {
    expect([0, 0.0001, 0.04, 5.25, 12.5, 220].map(figures)).toEqual([
      "0",
      "<0.001",
      "0.040",
      "5.25",
      "12.5",
      "220",
    ]);
  });
});

describe("a recording's samples", () => {
  it("become what stood on the wall", () => {
    const column = (name: string) => ({ name, unit: "", type: "", key: false });
    const keys = ["machine", "design", "pattern", "vnfs", "size_bytes", "repeat"];
    const of = (repeat: number) => ["L0", "ovs-dpdk", "chain", 2, 64, repeat];
    const rows = [0, 1].flatMap((repeat) =>
      [0, 1].flatMap((at) =>
        [
          ["sent", 9e6],
          ["received", 1e6],
          ["all VNFs", 3e6],
          ["VNF 1", 2e6],
          ["VNF 2", 1e6],
        ].map(([counted, pps]) => {
          const from = (2 * repeat + at) * 5e8;
          return [...of(repeat), from, from + 5e8, 1e5, counted!, pps!];
        }),
      ),
    );
    const samples = {
      columns: [...keys, "from_ns", "to_ns", "read_ns", "counted", "pps"].map(column),
      rows,
    };
    const marks = {
      columns: [...keys, "kind", "name", "of_design", "of_vnfs", "system_pps", "source"].map(column),
      rows: [[...of(1), "modelled", "pmd", "ovs-dpdk", 2, 4e6, "from 2 earlier trials"]],
    };
    const report = { sections: [{ id: "datapath", tables: { samples, marks } }] } as unknown as Report;
    const ceiling = { resource: "pmd", system_pps: 4e6, from: "from 2 earlier trials" };
    const next = { ...trial, repeat: 1 };
    expect(looksOf(report)).toEqual([
      look(0),
      look(1),
      look(2, { trial: next, ceiling }),
      look(3, { trial: next, ceiling }),
    ]);
  });

  it("are none where none were taken", () => {
    expect(looksOf({ sections: [] } as unknown as Report)).toEqual([]);
  });
});
