/** A heat map of chains: cells of time by the logarithm of cost. */
import type { Aggregates, Chain } from "../data/types";
import { logPlace } from "./quantile";

/** How strong a cell is drawn. Brendan Gregg's heat maps raise counts to 0.4 or so: single outliers stay visible beside the bulk. */
export function strength(count: number, most: number): number {
  return Math.max(0.16, (count / most) ** 0.4);
}

/** The cell at a place of the list: its row from below, its column. */
export function cellAt({ columns }: Aggregates["heat"], place: number): { row: number; column: number } {
  return { row: Math.floor(place / columns), column: place % columns };
}

/** The time between the lines of columns, and the cost at the lines of rows. */
export function timeAt({ heat, t0_ns, t1_ns }: Aggregates, column: number): number {
  return t0_ns + (column / heat.columns) * (t1_ns - t0_ns);
}

export function costAt({ rows, from_ns, to_ns }: Aggregates["heat"], row: number): number {
  return from_ns * (to_ns / from_ns) ** (row / rows);
}

/** The chain nearest to a place of the picture, by its begin and its cost; null where none has a cost. */
export function nearest(sums: Aggregates, chains: Chain[], at_ns: number, cost_ns: number): Chain | null {
  const { heat, t0_ns, t1_ns } = sums;
  const height = (cost: number) => logPlace(cost, heat.from_ns, heat.to_ns);
  const far = ({ from_ns, cost_ns: cost }: Chain) =>
    ((from_ns - at_ns) / (t1_ns - t0_ns)) ** 2 + (height(cost ?? 1) - height(cost_ns)) ** 2;
  return chains
    .filter((chain) => chain.cost_ns !== null)
    .reduce<Chain | null>((best, chain) => (best && far(best) <= far(chain) ? best : chain), null);
}
