/** Rows of any table: heads that sort, and however many rows there are. */
import { useMemo, useState } from "preact/hooks";
import type { Cell, Column } from "../data/types";
import { type Order, pressed, type Row, sorted } from "../maths/rows";
import { LongTable, SortHead } from "./TableBox";

interface Props {
  title: string;
  columns: Column[];
  rows: Row[];
  print: (cell: Cell, column: Column) => string;
  /** Shows a row where it lies in time; `null` where it lies nowhere. */
  see?: (row: Row) => (() => void) | null;
}

export function SortTable({ title, columns, rows, print, see }: Props) {
  const [sort, setSort] = useState<Order | null>(null);
  const shown = useMemo(() => (sort ? sorted(rows, sort.column, sort.descending) : rows), [rows, sort]);
  return (
    <LongTable
      title={title}
      count={shown.length}
      head={
        <tr>
          {columns.map((column) => {
            const on = sort?.column === column.name;
            return (
              <SortHead
                key={column.name}
                title={column.name.replace(/_ns$/, "").replaceAll("_", " ")}
                isText={isText(column)}
                sorted={on ? (sort.descending ? "descending" : "ascending") : "none"}
                sort={() => setSort(pressed(sort, column.name, isText(column)))}
              />
            );
          })}
          {see && <th>timeline</th>}
        </tr>
      }
      row={(i) => (
        <tr key={`${i}`}>
          {columns.map((column) => (
            <td key={column.name} class={isText(column) ? "" : "number"}>
              {print(shown[i]![column.name] ?? null, column)}
            </td>
          ))}
          {see && (
            <td>
              <See show={see(shown[i]!)} />
            </td>
          )}
        </tr>
      )}
    />
  );
}

function See({ show }: { show: (() => void) | null }) {
  return show ? (
    <button type="button" class="link" onClick={show}>
      see it
    </button>
  ) : null;
}

function isText({ type }: Column): boolean {
  return type === "text" || type === "bool";
}
