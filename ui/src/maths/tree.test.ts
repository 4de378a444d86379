import { describe, expect, it } from "vitest";
import { icicle, largest, sampleTree, timeTree } from "./tree";

describe("the tree of time", () => {
  const column = (name: string) => ({ name, unit: "", type: "", key: false });
  const report = {
    sections: [
      { id: "bench", tables: { exits: { columns: [], rows: [] }, vcpus: { columns: [], rows: [] } } },
      {
        id: "flow",
        tables: {
          vcpus: {
            columns: ["machine", "vm", "vcpu", "wall_ns", "guest_l1_ns", "handling_l1_ns"].map(column),
            rows: [
              ["L0", "web", 0, 100, 60, 40],
              ["L1", "L1/inner", 0, 100, 100, 0],
            ],
          },
          exits: {
            columns: ["machine", "vm", "vcpu", "level", "reason", "count", "total_ns"].map(column),
            rows: [
              ["L0", "web", 0, "L1", "MSR", 3, 30],
              ["L0", "web", 0, "L1", "HLT", 1, 10],
              ["L0", "web", 1, "L1", "HLT", 1, 9],
            ],
          },
          exit_details: {
            columns: ["machine", "vm", "vcpu", "level", "reason", "detail", "count", "total_ns"].map(column),
            rows: [
              ["L0", "web", 0, "L1", "MSR", "WRMSR TSC_DEADLINE", 2, 24],
              ["L0", "web", 1, "L1", "MSR", "elsewhere", 2, 24],
            ],
          },
          profile: {
            columns: ["machine", "vm", "vcpu", "level", "state", "mode", "symbol", "samples"].map(column),
            rows: [
              ["L0", "web", 0, "L0", "handling_l1", "kernel", "vmx_vcpu_run", 3],
              ["L0", "web", 0, "L1", "guest_l1", "guest", "idle", 5],
            ],
          },
        },
      },
    ],
  };

  it("sums to the wall time, and reasons to their state", () => {
    const tree = timeTree(report as never, (state) => state, { by: "vcpu" });
    expect(tree.size).toBe(100);
    const placed = icicle(tree, [], 0);
    const reasons = placed.filter((it) => it.depth === 5);
    expect(reasons.map((it) => [it.node.name, it.node.size])).toEqual([
      ["MSR", 30],
      ["HLT", 10],
    ]);
    expect(reasons[0]!.from).toBeCloseTo(0.6, 9);
    expect(icicle(tree, ["web", "vCPU 0"], 0)[0]!.node.size).toBe(100);
  });

  it("divides a reason by what its exits were about, and leaves the rest blank", () => {
    const placed = icicle(
      timeTree(report as never, (state) => state, { by: "vcpu" }),
      [],
      0,
    );
    const details = placed.filter((it) => it.depth === 6);
    expect(details.map((it) => [it.path.slice(-2), it.node.size])).toEqual([
      [["MSR", "WRMSR TSC_DEADLINE"], 24],
    ]);
  });

  it("has samples by function where a profiler ran", () => {
    const tree = sampleTree(report as never, (state) => state, { by: "vcpu" });
    expect(tree.size).toBe(8);
    expect(
      icicle(tree, [], 0)
        .filter((it) => it.depth === 6)
        .map((it) => it.node.name),
    ).toEqual(["idle", "vmx_vcpu_run"]);
  });

  it("has under L0 what figure levels has there, KVM's work without interrupts of the host", () => {
    const columns = [
      "machine",
      "vm",
      "vcpu",
      "wall_ns",
      "handling_l1_ns",
      "halt_poll_ns",
      "irq_ns",
      "nmi_ns",
    ];
    const vcpus = { columns: columns.map(column), rows: [["L0", "web", 0, 100, 70, 20, 7, 3]] };
    const report = { sections: [{ id: "flow", tables: { vcpus } }] };
    const tree = timeTree(report as never, (state) => state);
    expect(tree.children.map(({ name, size }) => [name, size])).toEqual([
      ["L0", 90],
      ["host interrupts", 10],
    ]);
  });

  it("shows what L1 recorded itself to whoever asks for it, and never adds that to L0's record", () => {
    const tree = timeTree(report as never, (state) => state, { by: "vcpu", seenBy: "L1" });
    expect(tree.children.map(({ name, size }) => [name, size])).toEqual([["L1/inner", 100]]);
  });
});

/** A host with so many vCPUs, each with many reasons, which differ in size. */
function host(vcpus: number, reasons: number) {
  const column = (name: string) => ({ name, unit: "", type: "", key: false });
  const lanes = Array.from({ length: vcpus }, (_, i) => ["L0", `vm-${Math.floor(i / 4)}`, i % 4]);
  const names = Array.from({ length: reasons }, (_, i) => `REASON_${i}`);
  const tables = {
    vcpus: {
      columns: ["machine", "vm", "vcpu", "wall_ns", "guest_l1_ns", "handling_l1_ns", "halted_ns"].map(column),
      rows: lanes.map((lane) => [...lane, 1000, 632, 300, 68]),
    },
    exits: {
      columns: ["machine", "vm", "vcpu", "level", "reason", "count", "total_ns"].map(column),
      rows: lanes.flatMap((lane) => names.map((name, i) => [...lane, "L1", name, 1, 1 + i])),
    },
    exit_details: {
      columns: ["machine", "vm", "vcpu", "level", "reason", "detail", "count", "total_ns"].map(column),
      rows: lanes.flatMap((lane) => names.map((name, i) => [...lane, "L1", name, "port", 1, 1 + i])),
    },
  };
  return { recording: {}, sections: [{ id: "flow", tables }] } as never;
}

describe("the tree of a wide host", () => {
  const own = (state: string) => state;

  it("adds up what all vCPUs did, and names the largest part of all of them", () => {
    const tree = timeTree(host(512, 20), own);
    expect(tree.children.map(({ name }) => name)).toEqual(["L1", "L0", "off CPU"]);
    const handling = tree.children[1]!.children[0]!;
    expect(handling.children.reduce((sum, { size }) => sum + size, 0)).toBeCloseTo(512 * 300, 6);
    expect(handling.children[0]).toMatchObject({ name: "REASON_19", exits: 512, exits_ns: 512 * 20 });
    for (const by of ["state", "vcpu"] as const) {
      const top = timeTree(host(512, 2), own, { by });
      const { name, size } = largest(top);
      expect([by, name, size / top.size]).toEqual([by, "guest_l1", 0.632]);
    }
  });

  it("looks at each row a few times, however many vCPUs there are", () => {
    let looked = 0;
    const counting = (vm: unknown) => ({
      toString: () => {
        looked++;
        return String(vm);
      },
    });
    const report = host(512, 20) as unknown as {
      sections: { tables: Record<string, { rows: unknown[][] }> }[];
    };
    const { exits, exit_details } = report.sections[0]!.tables;
    for (const row of [...exits!.rows, ...exit_details!.rows]) row[1] = counting(row[1]);
    timeTree(report as never, own);
    const rows = exits!.rows.length + exit_details!.rows.length;
    expect(looked).toBeGreaterThan(0);
    expect(looked / rows).toBeLessThan(6);
  });

  it("draws rows as full as the time is, however thin a part is", () => {
    const width = 1000;
    const placed = icicle(timeTree(host(512, 20), own, { by: "vcpu" }), [], 1 / width);
    for (const depth of [1, 2, 3, 4]) {
      const row = placed.filter((it) => it.depth === depth);
      const drawn = row.reduce((sum, { from, to }) => sum + to - from, 0);
      expect(drawn).toBeGreaterThan(0.98);
      expect(drawn).toBeLessThan(1 + 1e-9);
    }
    const thin = placed.filter(({ names }) => names.length > 1);
    expect(thin.length).toBeGreaterThan(0);
    expect(thin.some(({ names }) => names.includes("halted"))).toBe(true);
    expect(placed.length).toBeLessThan(8 * width);
  });
});
