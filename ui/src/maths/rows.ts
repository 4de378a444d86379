/** Tables as rows of named cells: filter, sort, and as CSV. */
import type { ColumnName, TableName } from "../data/tables";
import type { Cell, Column, Report, Table } from "../data/types";
import type { Window } from "./window";

/** The cells of a row by the names of its columns. */
export type Row<Name extends string = string> = Record<Name, Cell>;

/** A row of one of the program's tables, or some of its columns: what the program no longer has does not compile. */
export type RowOf<Name extends TableName, Some extends ColumnName<Name> = ColumnName<Name>> = Row<Some>;

/** A table by its full name, `section.table`: two sections may have tables of one name with other columns. */
export function tableOf<Name extends TableName>(
  report: Report,
  name: Name,
): Table<ColumnName<Name>> | undefined {
  const [section, table] = name.split(".") as [string, string];
  const found = report.sections.find((known) => known.id === section)?.tables[table];
  return found as Table<ColumnName<Name>> | undefined;
}

/** Rows by their table: a view draws again with each letter in a filter. */
const made = new WeakMap<object, Row[]>();

export function rowsOf<Name extends string>(table: Table<Name> | undefined): Row<Name>[] {
  if (!table) return [];
  const known = made.get(table);
  if (known) return known;
  const rows = table.rows.map((cells) => {
    const row = {} as Row<Name>;
    table.columns.forEach((column, i) => {
      row[column.name] = cells[i] ?? null;
    });
    return row;
  });
  made.set(table, rows);
  return rows;
}

export function text<Name extends string>(row: Row<Name>, name: NoInfer<Name>): string {
  const cell = row[name];
  return cell === null || cell === undefined ? "" : String(cell);
}

export function number<Name extends string>(row: Row<Name>, name: NoInfer<Name>): number {
  const cell = row[name];
  return typeof cell === "number" ? cell : 0;
}

/** The columns of where a row lies on the timeline, in every table that has such rows. */
export const TIMELINE: [string, string] = ["timeline_from_ns", "timeline_to_ns"];

export function spanOf(row: Row): Window | null {
  const [t0, t1] = TIMELINE.map((name) => row[name]);
  return typeof t0 === "number" && typeof t1 === "number" && t0 < t1 ? { t0, t1 } : null;
}

/** Keys that are the same in all rows, of which there are several: they are said once. */
export function constants<Name extends string>({ columns, rows }: Table<Name>): Column<Name>[] {
  if (rows.length < 2) return [];
  return columns.filter(
    ({ key }, i) => key && rows[0]![i] != null && rows.every((row) => row[i] === rows[0]![i]),
  );
}

/** Cells of a row as they are searched, in lower case and below each other: no word has a line break in it. */
const searched = new WeakMap<Row, string>();

/** The words of the filter that was asked for last: a table asks for each of its rows. */
let asked = { filter: "", words: [] as string[] };

function wordsOf(filter: string): string[] {
  if (filter !== asked.filter)
    asked = {
      filter,
      words: filter
        .toLowerCase()
        .split(/\s+/)
        .filter((word) => word.length > 0),
    };
  return asked.words;
}

/** Every word must occur in some cell; `level:L1` asks one column. */
export function matches(row: Row, filter: string): boolean {
  return wordsOf(filter).every((word) => {
    const colon = word.indexOf(":");
    const column = word.slice(0, Math.max(0, colon));
    if (column in row) return text(row, column).toLowerCase() === word.slice(colon + 1);
    let cells = searched.get(row);
    if (cells === undefined) {
      cells = Object.values(row).join("\n").toLowerCase();
      searched.set(row, cells);
    }
    return cells.includes(word);
  });
}

/** What a table is sorted by. */
export interface Order {
  column: string;
  descending: boolean;
}

/** The order once a column's head is pressed: numbers from the largest on, words from A on; pressed again, the other way. */
export function pressed(order: Order | null, column: string, isText: boolean): Order {
  return { column, descending: order?.column === column ? !order.descending : !isText };
}

/** Numbers by size, words by alphabet, missing last. */
export function sorted<Name extends string>(
  rows: Row<Name>[],
  column: NoInfer<Name>,
  descending: boolean,
): Row<Name>[] {
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
