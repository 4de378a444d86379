/** What the gauge wall shows at an instant, from a tile and the sums of all chains. */
import type { Tile } from "../data/tile";
import type { Aggregates, State } from "../data/types";
import { INTERRUPTS, whoseOf } from "../draw/tokens";

export interface Series {
  title: string;
  unit: "share" | "per second" | "exits" | "ns" | "Mpps" | "Gb/s";
  /** State whose colour it has, or empty. */
  state: string;
  /** Null where it is unknown. */
  values: (number | null)[];
  most: number;
  /** The same in words of another unit, for each value. */
  also?: string[];
  /** What it is held against. Published rates may be far beyond `most`, and are not drawn then. */
  marks?: Mark[];
}

/** A modelled ceiling or a published point, in the unit of its gauge. */
export interface Mark {
  kind: "modelled" | "published";
  value: number;
  label: string;
}

/** A share below this is what subtracting leaves of 0: a pixel's smallest share, of 1,000 vCPUs, is 4e-6. */
const DUST = 1e-9;

/** Width of a gauge by its height. */
const RATIO = 200 / 126;

const SHARES: [string, string, string][] = [
  ["L2 guest", "L2", "guest_l2"],
  ["L1 guest", "L1", "guest_l1"],
  ["L0, KVM's work", "L0", "handling_l1"],
  ["host interrupts", INTERRUPTS, "irq"],
  ["VMM in userspace", "VMM", "userspace"],
  ["off the CPU", "off CPU", "halted"],
  ["unknown", "unknown", "unknown"],
];

/** A series per gauge, a value per pixel of the tile, each over the last `back` pixels; null where all of that is unknown. */
export function seriesOf(
  tile: Tile,
  vcpus: number[],
  states: State[],
  chains: Aggregates | null,
  back: number,
): Series[] {
  const lanes = tile.lanes.filter((lane) => vcpus.includes(lane.lane));
  const steps = states.map((state) => whoseOf(state.name));
  const shareOf = (wanted: (step: string) => boolean) =>
    Array.from({ length: tile.width }, (_, pixel) => {
      let sum = 0;
      for (const lane of lanes) {
        for (let s = 0; s < tile.states; s++)
          if (wanted(steps[s]!)) sum += lane.cover[pixel * tile.states + s]!;
      }
      return sum / 255 / Math.max(1, lanes.length);
    });
  const known = trailing(
    shareOf((step) => step !== "unknown"),
    back,
  ).map((share) => share > DUST);
  const out: Series[] = [];
  for (const [title, step, state] of SHARES) {
    const values = shareOf((it) => it === step);
    if (!values.some((value) => value > 0)) continue;
    const over = trailing(values, back).map((value, i) => (known[i] || step === "unknown" ? value : null));
    out.push({ title, unit: "share", state, values: over, most: 1 });
  }
  if (chains && chains.chains > 0) out.push(...ofChains(chains, known));
  return out;
}

/**
 * What all chains add up to over time. The cost of a chain is unknown where there was none; how many there were is
 * unknown where no time of a vCPU is `known`.
 */
export function ofChains({ slots, t0_ns, t1_ns }: Aggregates, known: boolean[]): Series[] {
  const slotSeconds = (t1_ns - t0_ns) / slots.chains.length / 1e9;
  const over = (values: number[], i: number) =>
    values.slice(Math.max(0, i + 1 - slots.back), i + 1).reduce((sum, value) => sum + value, 0);
  const rate = slots.chains.map((_, i) => {
    const isKnown = known[Math.floor((i * known.length) / slots.chains.length)] ?? true;
    return isKnown ? over(slots.chains, i) / (Math.min(slots.back, i + 1) * slotSeconds) : null;
  });
  const multiplication = slots.undisturbed.map((_, i) => {
    const undisturbed = over(slots.undisturbed, i);
    return undisturbed > 0 ? over(slots.exits, i) / undisturbed : null;
  });
  const series = (title: string, unit: Series["unit"], values: (number | null)[]): Series => ({
    title,
    unit,
    state: "",
    values,
    most: nice(Math.max(0, ...values.map((value) => value ?? 0))),
  });
  return [
    series("exits of L2 reflected to L1", "per second", rate),
    series("L1 exits per reflected exit", "exits", multiplication),
    series("cost of a chain, p99", "ns", slots.p99_ns),
  ];
}

function trailing(values: number[], back: number): number[] {
  let sum = 0;
  return values.map((value, i) => {
    sum += value - (i >= back ? values[i - back]! : 0);
    return Math.max(0, sum / Math.min(back, i + 1));
  });
}

/** Ends of bars: none is further than a quarter beyond the one before it. */
const ENDS = [1, 1.2, 1.5, 1.8, 2, 2.5, 3, 3.5, 4, 5, 6, 7, 8, 10];

/** The end of a bar that holds a value: the next round number. */
export function nice(value: number): number {
  if (value <= 0) return 1;
  const power = 10 ** Math.floor(Math.log10(value));
  return ENDS.map((end) => Number((end * power).toPrecision(12))).find((end) => end >= value) ?? value;
}

/** Into how many columns gauges go so that all fit into a wall and are as large as they can be. */
export function fitColumns(gauges: number, width: number, height: number): number {
  const size = (columns: number) => Math.min(width / columns, (height / Math.ceil(gauges / columns)) * RATIO);
  let best = 1;
  for (let columns = 2; columns <= gauges; columns++) if (size(columns) > size(best)) best = columns;
  return best;
}
