/**
 * Who recorded it. Machines inside each other record the same time: an exit of L2 is in the trace of L0 and in that of L1, and
 * its time counts once. Only the outermost level that recorded anything counts, unless another one is asked for.
 */
import type { Report } from "../data/types";
import { type Row, text } from "./rows";

/** The level of the machine that a row was recorded on. */
function levelOf(report: Report, row: Row<"machine">): string {
  const id = text(row, "machine");
  const known = report.recording?.machines?.find((machine) => machine.id === id);
  return `L${known?.level ?? /^L(\d+)/.exec(id)?.[1] ?? 0}`;
}

/** Levels that recorded some of these rows, the outermost first: `L0`, `L1`. */
export function witnesses(report: Report, rows: Row<"machine">[]): string[] {
  const machines = new Map(rows.map((row) => [text(row, "machine"), row]));
  return [...new Set([...machines.values()].map((row) => levelOf(report, row)))].sort();
}

/** The rows as one level saw them: `by`, where it has any, else the outermost. Machines of one level do not see each other. */
export function witnessed<Of extends Row<"machine">>(report: Report, rows: Of[], by?: string): Of[] {
  const all = witnesses(report, rows);
  if (all.length < 2) return rows;
  const level = all.find((level) => level === by) ?? all[0];
  const seen = new Map<string, boolean>();
  return rows.filter((row) => {
    const machine = text(row, "machine");
    const known = seen.get(machine) ?? levelOf(report, row) === level;
    seen.set(machine, known);
    return known;
  });
}
