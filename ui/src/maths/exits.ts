/** What exits add up to, over the vCPUs of a table. */
import { number, type RowOf, text } from "./rows";

type Exit = RowOf<"flow.exits", "level" | "reason" | "count" | "total_ns">;

export interface ExitSum {
  level: string;
  reason: string;
  total_ns: number;
}

/** The level and reason whose exits took longest in all rows together, and what all of them took. */
export function mostExpensive(rows: Exit[]): { most: ExitSum | null; total_ns: number; exits: number } {
  const sums = new Map<string, ExitSum>();
  let most: ExitSum | null = null;
  let [total_ns, exits] = [0, 0];
  for (const row of rows) {
    const [level, reason] = [text(row, "level"), text(row, "reason")];
    const sum = sums.get(`${level}\t${reason}`) ?? { level, reason, total_ns: 0 };
    sums.set(`${level}\t${reason}`, sum);
    sum.total_ns += number(row, "total_ns");
    total_ns += number(row, "total_ns");
    exits += number(row, "count");
    if (!most || sum.total_ns > most.total_ns) most = sum;
  }
  return { most, total_ns, exits };
}
