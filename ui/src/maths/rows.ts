/** Tables as rows of named cells: filter, sort, and two recordings side by side. */
import type { Cell, Report, Table } from "../data/types";

export type Row = Record<string, Cell>;

/** A table by its full name, `section.table`: two sections may have tables of one name with other columns. */
export function tableOf(report: Report, name: `${string}.${string}`): Table | undefined {
  const [section, table] = name.split(".") as [string, string];
  return report.sections.find((known) => known.id === section)?.tables[table];
}

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
      const colon = word.indexOf(":");
      const column = word.slice(0, Math.max(0, colon));
      if (column in row) return text(row, column).toLowerCase() === word.slice(colon + 1);
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

/**
 * As CSV. Text that a spreadsheet would take for a formula gets an apostrophe in front, as OWASP advises ("CSV
 * Injection"): names of threads and VMs are chosen by whoever runs on the traced machines. Numbers stay as they are.
 */
export function csv(columns: string[], rows: Cell[][]): string {
  const quoted = (cell: Cell) => {
    const text = cell === null ? "" : String(cell);
    const word = typeof cell === "string" && /^[=+\-@\t\r]/.test(text) ? `'${text}` : text;
    return /[",\n\r]/.test(word) ? `"${word.replaceAll('"', '""')}"` : word;
  };
  return `${[columns, ...rows].map((row) => row.map(quoted).join(",")).join("\r\n")}\r\n`;
}
