/** Reasons at L2 on the left, the exits of L1 that they cause on the right, joined by bands. */
import { number, type RowOf, text } from "./rows";

export interface Band {
  from: string;
  to: string;
  value: number;
}

/** Exits of L1 by the reason of the L2 exit that caused them, from the table that counts every one. */
export function bandsOf(exits: RowOf<"flow.chain_exits", "reason" | "l1_reason" | "count">[]): Band[] {
  const sums = new Map<string, Band>();
  for (const row of exits) {
    const [from, to] = [text(row, "reason"), text(row, "l1_reason")];
    const key = `${from}\t${to}`;
    const band = sums.get(key) ?? { from, to, value: 0 };
    band.value += number(row, "count");
    sums.set(key, band);
  }
  return [...sums.values()].sort((a, b) => b.value - a.value);
}

export interface Stop {
  name: string;
  value: number;
  top: number;
  height: number;
}

/** Places the names of one side from top to bottom, the largest first, `gap` apart, inside `height`. */
export function stops(bands: Band[], side: "from" | "to", height: number, gap: number): Map<string, Stop> {
  const sums = new Map<string, number>();
  for (const band of bands) sums.set(band[side], (sums.get(band[side]) ?? 0) + band.value);
  const ordered = [...sums].sort((a, b) => b[1] - a[1]);
  const total = ordered.reduce((sum, [, value]) => sum + value, 0);
  const least = 3;
  const room = height - gap * Math.max(0, ordered.length - 1) - least * ordered.length;
  const out = new Map<string, Stop>();
  let top = 0;
  for (const [name, value] of ordered) {
    const size = least + (room * value) / Math.max(1, total);
    out.set(name, { name, value, top, height: size });
    top += size + gap;
  }
  return out;
}

/** A band between its stops: from where to where it goes on either side. */
export interface Ribbon {
  band: Band;
  left: [number, number];
  right: [number, number];
}

/** Every band at its stops, those of a stop below each other in the order of the stops on the other side. */
export function ribbons(bands: Band[], left: Map<string, Stop>, right: Map<string, Stop>): Ribbon[] {
  const used = { left: new Map<string, number>(), right: new Map<string, number>() };
  const part = (side: "left" | "right", stop: Stop, value: number): [number, number] => {
    const from = used[side].get(stop.name) ?? stop.top;
    const to = from + (stop.height * value) / stop.value;
    used[side].set(stop.name, to);
    return [from, to];
  };
  const ordered = [...bands].sort(
    (a, b) => left.get(a.from)!.top - left.get(b.from)!.top || right.get(a.to)!.top - right.get(b.to)!.top,
  );
  return ordered.map((band) => ({
    band,
    left: part("left", left.get(band.from)!, band.value),
    right: part("right", right.get(band.to)!, band.value),
  }));
}

/** Chains that ended and that nothing disturbed, by the reason of the L2 exit, over all VMs. */
export function undisturbedChains(
  chains: RowOf<"flow.chains", "reason" | "count" | "censored" | "disturbed">[],
): Map<string, number> {
  const sums = new Map<string, number>();
  for (const row of chains) {
    const reason = text(row, "reason");
    sums.set(reason, (sums.get(reason) ?? 0) + undisturbed(row));
  }
  return sums;
}

/** Of a row's chains those whose exits and cost are those of one exit of L2. */
export function undisturbed(row: RowOf<"flow.chains", "count" | "censored" | "disturbed">): number {
  return number(row, "count") - number(row, "censored") - number(row, "disturbed");
}

/** A band of constant meaning: its thickness at either end is its share of the stop there. */
export function ribbon(x0: number, a0: number, a1: number, x1: number, b0: number, b1: number): string {
  const middle = (x0 + x1) / 2;
  return `M${x0} ${a0}C${middle} ${a0} ${middle} ${b0} ${x1} ${b0}V${b1}C${middle} ${b1} ${middle} ${a1} ${x0} ${a1}Z`;
}
