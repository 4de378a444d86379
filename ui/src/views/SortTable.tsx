/** Rows of any table: heads that sort, and however many rows there are. */
import { useMemo, useState } from "preact/hooks";
import type { Cell, Column } from "../data/types";
import { type Order, pressed, type Row, sorted, TIMELINE } from "../maths/rows";
import { LongTable, SortHead } from "./TableBox";

interface Props {
  title: string;
  columns: Column[];
  rows: Row[];
  print: (cell: Cell, column: Column) => string;
  see?: See;
}

/** In the first column, where a row lies in time, and what shows it there; `null` where it lies nowhere. */
export type See = (row: Row) => { when: string; what: string; show: () => void } | null;

export function SortTable({ title, columns, rows, print, see }: Props) {
  const [sort, setSort] = useState<Order | null>(null);
  const shown = useMemo(() => (sort ? sorted(rows, sort.column, sort.descending) : rows), [rows, sort]);
  return (
    <LongTable
      title={title}
      count={shown.length}
      head={
        <tr>
          {see && (
            <SortHead
              title="timeline"
              isText={false}
              sorted={stateOf(sort, TIMELINE[0])}
              sort={() => setSort(pressed(sort, TIMELINE[0], true))}
            />
          )}
          {columns.map((column) => (
            <SortHead
              key={column.name}
              title={titleOf(column.name)}
              isText={isText(column)}
              sorted={stateOf(sort, column.name)}
              sort={() => setSort(pressed(sort, column.name, isText(column)))}
            />
          ))}
        </tr>
      }
      row={(i) => (
        <tr key={`${i}`}>
          {see && (
            <td class="number">
              <Seen place={see(shown[i]!)} />
            </td>
          )}
          {columns.map((column) => (
            <td key={column.name} class={isText(column) ? "" : "number"}>
              {print(shown[i]![column.name] ?? null, column)}
            </td>
          ))}
        </tr>
      )}
    />
  );
}

function Seen({ place }: { place: ReturnType<See> }) {
  if (!place) return <>–</>;
  return (
    <button
      type="button"
      class="link"
      aria-label={`See it on the timeline: ${place.what}`}
      onClick={place.show}
    >
      {place.when}
    </button>
  );
}

function stateOf(sort: Order | null, column: string): "ascending" | "descending" | "none" {
  if (sort?.column !== column) return "none";
  return sort.descending ? "descending" : "ascending";
}

/** A column's name in words; what it is of, its cells say. */
export function titleOf(column: string): string {
  return column.replace(/_(ns|bytes)$/, "").replaceAll("_", " ");
}

function isText({ type }: Column): boolean {
  return type === "text" || type === "bool";
}
