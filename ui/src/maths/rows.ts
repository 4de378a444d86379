/** Tables as rows of named cells: filter, sort, and two recordings side by side. */
import type { Cell, Table } from "../data/types";

export type Row = Record<string, Cell>;

export function rowsOf(table: Table | undefined): Row[] {
  if (!table) return [];
  return table.rows.map((cells) => {
    const row: Row = {};
    table.columns.forEach((column, i) => {
      row[column.name] = cells[i] ?? null;
    });
    return row;
  });
}

export function text(row: Row, name: string): string {
  const cell = row[name];
  return cell === null || cell === undefined ? "" : String(cell);
}

export function number(row: Row, name: string): number {
  const cell = row[name];
  return typeof cell === "number" ? cell : 0;
}

/** Every word must occur in some cell; `level:L1` asks one column. */
export function matches(row: Row, filter: string): boolean {
  return filter
    .toLowerCase()
    .split(/\s+/)
    .filter((word) => word.length > 0)
    .every((word) => {
      const [column, value] = word.includes(":") ? [word.split(":")[0]!, word.split(":")[1]!] : [null, word];
      if (column !== null && column in row) return text(row, column).toLowerCase() === value;
      return Object.values(row).some((cell) =>
        String(cell ?? "")
          .toLowerCase()
          .includes(word),
      );
    });
}

/** Numbers by size, words by alphabet, missing last. */
export function sorted(rows: Row[], column: string, descending: boolean): Row[] {
  const sign = descending ? -1 : 1;
  return [...rows].sort((a, b) => {
    const x = a[column] ?? null;
    const y = b[column] ?? null;
    if (x === null || y === null) return Number(x === null) - Number(y === null);
    if (typeof x === "number" && typeof y === "number") return sign * (x - y);
    return sign * String(x).localeCompare(String(y));
  });
}

/** Rows of `b` by level and reason, summed over VMs and vCPUs, which have other names in another recording. */
export function byReason(rows: Row[]): Map<string, { count: number; total_ns: number }> {
  const sums = new Map<string, { count: number; total_ns: number }>();
  for (const row of rows) {
    const key = `${text(row, "level")} ${text(row, "reason")}`;
    const sum = sums.get(key) ?? { count: 0, total_ns: 0 };
    sum.count += number(row, "count");
    sum.total_ns += number(row, "total_ns");
    sums.set(key, sum);
  }
  return sums;
}

export function csv(columns: string[], rows: Cell[][]): string {
  const quoted = (cell: Cell) => {
    const word = cell === null ? "" : String(cell);
    return /[",\n\r]/.test(word) ? `"${word.replaceAll('"', '""')}"` : word;
  };
  return `${[columns, ...rows].map((row) => row.map(quoted).join(",")).join("\r\n")}\r\n`;
}
