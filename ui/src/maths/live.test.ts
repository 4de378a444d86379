import { describe, expect, it } from "vitest";
import { type Sample, withSample } from "../data/live";
import { liveSeries, pieces } from "./live";

const sample = (number: number, more: Partial<Sample> = {}): Sample => ({
  number,
  from_ns: number * 1e9,
  to_ns: (number + 1) * 1e9,
  seen_share: 1,
  events_per_second: 10,
  exits_per_second: null,
  userspace_exits_per_second: null,
  chains_per_second: null,
  exits_per_chain: null,
  wakeup_p99_ns: null,
  vcpus: 1,
  shares: { guest_l1: 0.75, kvm: 0.25, halted: 0, vmm: null },
  vms: [],
  lost_events: 0,
  bytes: 0,
  ...more,
});

describe("live gauges", () => {
  it("keep the last 300 samples, each once", () => {
    let samples: Sample[] = [];
    for (let i = 0; i < 305; i++) samples = withSample(samples, sample(i));
    samples = withSample(samples, sample(200));
    expect([samples.length, samples[0]!.number, samples.at(-1)!.number]).toEqual([300, 5, 304]);
  });

  it("show what was known at least once, and a gap where it was not", () => {
    const series = liveSeries([sample(0), sample(1, { exits_per_second: 700 })]);
    expect(series.map((it) => it.title)).toEqual(["exits", "L1 guest", "L0, KVM's work", "events recorded"]);
    expect(series[0]).toMatchObject({ values: [null, 700], most: 700 });
    expect(series[1]!.values).toEqual([0.75, 0.75]);
  });

  it("divide a bar by shares", () => {
    expect(pieces(sample(0).shares).map(({ from, size }) => [from, size])).toEqual([
      [0, 0.75],
      [0.75, 0.25],
    ]);
  });
});
