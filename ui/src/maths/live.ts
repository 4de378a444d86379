/** Samples of a recording that is being made, as the series of a wall of gauges. */
import type { Sample, Shares } from "../data/live";
import { nice, type Series } from "./gauges";

/** Shares in the order of the levels; what has no name here is left to the others. */
export const SHARES: [string, string, string][] = [
  ["guest_l3", "L3 guest", "guest_l3"],
  ["guest_l2", "L2 guest", "guest_l2"],
  ["guest_l1", "L1 guest", "guest_l1"],
  ["guest_unknown_level", "guest, level unknown", "guest_unknown_level"],
  ["kvm", "L0, KVM's work", "handling_l1"],
  ["vmm", "VMM in userspace", "userspace"],
  ["preempted", "waiting for a CPU", "preempted"],
  ["blocked", "blocked", "blocked"],
  ["halted", "halted", "halted"],
  ["unknown", "unknown", "unknown"],
];

type Number = (sample: Sample) => number | null;

const RATES: [string, Series["unit"], Number][] = [
  ["exits", "per second", (it) => it.exits_per_second],
  ["exits to the VMM", "per second", (it) => it.userspace_exits_per_second],
  ["exits of L2 reflected to L1", "per second", (it) => it.chains_per_second],
  ["L1 exits per reflected exit", "exits", (it) => it.exits_per_chain],
  ["wake-up to running, p99", "ns", (it) => it.wakeup_p99_ns],
  ["events recorded", "per second", (it) => it.events_per_second],
];

/** Gauges that have had a value at least once, with a place for each sample. */
export function liveSeries(samples: Sample[]): Series[] {
  const shares = SHARES.map(
    ([name, title, state]): Series => ({
      title,
      unit: "share",
      state,
      values: samples.map((sample) => sample.shares[name] ?? null),
      most: 1,
    }),
  );
  const rates = RATES.map(([title, unit, of]): Series => {
    const values = samples.map(of);
    return { title, unit, state: "", values, most: nice(Math.max(0, ...values.map((value) => value ?? 0))) };
  });
  const all = [...rates.slice(0, 1), ...shares, ...rates.slice(1)];
  return all.filter(
    (series) =>
      series.values.some((value) => value !== null) &&
      (series.unit !== "share" || series.values.some((value) => (value ?? 0) > 0)),
  );
}

/** Shares as pieces of a bar that is 1 long. */
export function pieces(shares: Shares): { state: string; title: string; from: number; size: number }[] {
  let from = 0;
  return SHARES.flatMap(([name, title, state]) => {
    const size = shares[name] ?? 0;
    if (size <= 0) return [];
    from += size;
    return [{ state, title, from: from - size, size }];
  });
}
