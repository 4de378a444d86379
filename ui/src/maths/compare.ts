/** Exits of two recordings by level and reason, each per second of its own length: one may be longer than the other. */
import { number, type RowOf, text } from "./rows";

type Exit = RowOf<"flow.exits", "level" | "reason" | "count" | "total_ns">;

export interface Rate {
  /** Exits per second. */
  count: number;
  /** Time in them per second, in ns, over all vCPUs. */
  time_ns: number;
}

export interface Change {
  level: string;
  reason: string;
  before: Rate;
  after: Rate;
}

function ratesOf(rows: Exit[], seconds: number): Map<string, Rate> {
  const sums = new Map<string, Rate>();
  for (const row of rows) {
    const key = `${text(row, "level")}\t${text(row, "reason")}`;
    const sum = sums.get(key) ?? { count: 0, time_ns: 0 };
    sum.count += number(row, "count") / seconds;
    sum.time_ns += number(row, "total_ns") / seconds;
    sums.set(key, sum);
  }
  return sums;
}

/** Every level and reason of either side, summed over VMs and vCPUs, which have other names in another recording. */
export function changes(
  before: { rows: Exit[]; seconds: number },
  after: { rows: Exit[]; seconds: number },
): Change[] {
  const [a, b] = [ratesOf(before.rows, before.seconds), ratesOf(after.rows, after.seconds)];
  const none = { count: 0, time_ns: 0 };
  return [...new Set([...a.keys(), ...b.keys()])].map((key) => {
    const [level, reason] = key.split("\t") as [string, string];
    return { level, reason, before: a.get(key) ?? none, after: b.get(key) ?? none };
  });
}

/** `-18.2 %`, `new`, `gone`, `same`: how far `after` is from `before`. */
export function changeIn(before: number, after: number): string {
  if (before === after) return "same";
  if (before === 0) return "new";
  if (after === 0) return "gone";
  const percent = (100 * (after - before)) / before;
  const sign = percent < 0 ? "\u2212" : "+";
  return `${sign}${Math.abs(percent) >= 100 ? Math.abs(percent).toFixed(0) : Math.abs(percent).toFixed(1)} %`;
}
