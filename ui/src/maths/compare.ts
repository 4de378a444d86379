/**
 * Exits of two recordings by level and reason, each divided by what can be held against the other: one may be longer, or have done more.
 *
 * ```text
 * per second      by the length of each recording
 * per chain       by its chains with a known end: exits of L2 that L1 handled
 * per unit        by the work that was done meanwhile, as the comparison counts it
 * ```
 */
import type { Report } from "../data/types";
import { undisturbed } from "./multiplication";
import { number, type Row, type RowOf, rowsOf, tableOf, text } from "./rows";
import { witnessed } from "./witness";

type Exit = RowOf<"flow.exits", "level" | "reason" | "count" | "total_ns">;

export interface Rate {
  /** Exits per unit. */
  count: number;
  /** Time in them per unit, in ns, over all vCPUs. */
  time_ns: number;
}

export interface Change {
  level: string;
  reason: string;
  before: Rate;
  after: Rate;
}

function ratesOf(rows: Exit[], units: number): Map<string, Rate> {
  const sums = new Map<string, Rate>();
  for (const row of rows) {
    const key = `${text(row, "level")}\t${text(row, "reason")}`;
    const sum = sums.get(key) ?? { count: 0, time_ns: 0 };
    sum.count += number(row, "count") / units;
    sum.time_ns += number(row, "total_ns") / units;
    sums.set(key, sum);
  }
  return sums;
}

/** Every level and reason of either side, summed over VMs and vCPUs, which have other names in another recording. */
export function changes(
  before: { rows: Exit[]; units: number },
  after: { rows: Exit[]; units: number },
): Change[] {
  const [a, b] = [ratesOf(before.rows, before.units), ratesOf(after.rows, after.units)];
  const none = { count: 0, time_ns: 0 };
  return [...new Set([...a.keys(), ...b.keys()])].map((key) => {
    const [level, reason] = key.split("\t") as [string, string];
    return { level, reason, before: a.get(key) ?? none, after: b.get(key) ?? none };
  });
}

/** What exits can be divided by. */
export interface Per {
  /** In the address. */
  id: string;
  /** `second`, `chain`, `exit of L2`, `request`. */
  unit: string;
  before: number;
  after: number;
}

/** All that both sides have some of. `seconds` are the lengths of both, `compared` is the answer of `compare`, where it is known. */
export function basesOf(
  [before, after]: [Report, Report],
  seconds: [number, number],
  compared: Report | null,
): Per[] {
  const chains = [before, after].map((report) =>
    witnessed(report, rowsOf(tableOf(report, "flow.chains"))).reduce((sum, row) => sum + undisturbed(row), 0),
  ) as [number, number];
  const all = [
    { id: "second", unit: "second", before: seconds[0], after: seconds[1] },
    { id: "chain", unit: "chain", before: chains[0], after: chains[1] },
    ...worksOf([before, after], compared),
  ];
  return all.filter(({ before, after }) => before > 0 && after > 0);
}

/** Units of work of both sides: the busy time of all vCPUs, divided by what each unit took of it. */
function worksOf(reports: [Report, Report], compared: Report | null): Per[] {
  if (!compared) return [];
  const busy = rowsOf(tableOf(compared, "compare.causes")).find((row) => text(row, "part") === "all");
  const wall = reports.map((report) =>
    witnessed(report, rowsOf(tableOf(report, "flow.vcpus"))).reduce(
      (sum, row) => sum + number(row, "wall_ns"),
      0,
    ),
  );
  if (!busy) return [];
  return rowsOf(tableOf(compared, "compare.per_work"))
    .filter((row) => text(row, "part") === "all")
    .map((row) => ({
      id: `work:${text(row, "work")}`,
      unit: text(row, "work"),
      before: (wall[0]! * number(busy, "before")) / number(row, "before_ns"),
      after: (wall[1]! * number(busy, "after")) / number(row, "after_ns"),
    }));
}

/** What `compare` says of a row. */
export interface Judged {
  verdict: string;
  /** The 95 % interval, in words; empty where there is none. */
  interval: string;
}

/** The verdict on exits of this level and reason per that unit; a string says why there is none. */
export function judge(
  compared: Report | null,
  { unit, id }: Per,
  level: string,
  reason: string,
): Judged | string {
  if (!compared) return "the comparison has not been read";
  if (id === "chain") return "the comparison judges exits per second and per unit of work";
  if (id === "second") {
    const rows = rowsOf(tableOf(compared, "compare.change"));
    const row = rows.find((row) => text(row, "metric") === `${level} ${reason}, exits/s`);
    return row ? judged(row, "low", "high") : "the comparison has no row for it";
  }
  const rows = rowsOf(tableOf(compared, "compare.per_work"));
  const part = `${reason} of ${level}`;
  const row = rows.find((row) => text(row, "work") === unit && text(row, "part") === part);
  return row ? { verdict: text(row, "verdict"), interval: "" } : "the comparison has no row for it";
}

function judged(row: Row, low: string, high: string): Judged {
  const [from, to] = [row[low], row[high]];
  const known = typeof from === "number" && typeof to === "number" && to > from;
  return { verdict: text(row, "verdict"), interval: known ? `x${times(from)} to x${times(to)}` : "" };
}

/** Two figures that say something. */
function times(ratio: number): string {
  return ratio >= 100
    ? ratio.toFixed(0)
    : ratio >= 1
      ? ratio.toFixed(1)
      : Number(ratio.toPrecision(2)).toString();
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

/** `+8.3 points`, `same`, `new`, `gone`: how far a share is from what it was. As a ratio it would read as points. */
export function pointsIn(before: number, after: number): string {
  if (before === after) return "same";
  if (before === 0) return "new";
  if (after === 0) return "gone";
  const points = 100 * Math.abs(after - before);
  if (points < 0.05) return "<0.1 points";
  return `${after < before ? "\u2212" : "+"}${points.toFixed(1)} points`;
}

/** A name of more letters does not fit over a column. */
const LONGEST_NAME = 14;

/** Two names as short as tells them apart: without the words that both begin with, where they are long. */
export function apart(before: string, after: string): [string, string] {
  if (Math.max(before.length, after.length) <= LONGEST_NAME) return [before, after];
  let same = 0;
  while (same < before.length && before[same] === after[same]) same++;
  const word = before.slice(0, same).search(/[^a-z0-9]*[a-z0-9]*$/i);
  return word > 0 ? [`…${before.slice(word)}`, `…${after.slice(word)}`] : [before, after];
}
