/** What tables share: a box of their own, so that a wide one does not widen the page, the heads of columns that sort, and the filter of their rows. */
import type { ComponentChildren, JSX } from "preact";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { go, part } from "../state/store";

/** Up to so many rows are all there; of more, those on screen. */
const ALL = 60;
/** Rows above and below the screen that are there for the hand that scrolls. */
const SPARE = 6;
const ROW_PIXELS = 30;

interface RowsProps {
  title: string;
  head: ComponentChildren;
  /** Rows of the head. */
  heads?: number;
  /** How many rows. */
  count: number;
  /** Row number `i`; all are equally high. */
  row: (i: number) => JSX.Element;
  /** The last column has a picture, and takes all the room that the others leave. */
  last?: "wide";
}

/** A table of any length: of a long one only the rows on screen are in the document, on paper all of them. */
export function LongTable({ title, head, heads = 1, count, row, last: column }: RowsProps) {
  const box = useRef<HTMLDivElement>(null);
  const [top, setTop] = useState(0);
  const [high, setHigh] = useState(ROW_PIXELS);
  const printing = usePrinting();
  const long = count > ALL && !printing;
  const seen = Math.ceil((box.current?.clientHeight || innerHeight) / high);
  const first = long ? Math.min(Math.max(0, Math.floor(top / high) - SPARE), Math.max(0, count - seen)) : 0;
  const last = long ? Math.min(count, first + seen + 2 * SPARE) : count;
  useLayoutEffect(() => {
    const it = box.current;
    if (!it || !long) return;
    const rows = it.querySelectorAll<HTMLElement>("tbody tr:not(.gap)");
    const [one, other] = [rows[0], rows[rows.length - 1]];
    if (!one || !other || one === other) return;
    const each = (other.offsetTop - one.offsetTop) / (rows.length - 1);
    if (each > 0 && Math.abs(each - high) > 0.5) setHigh(each);
  }, [long]);
  useLayoutEffect(() => {
    // Columns only get wider while one scrolls: a table that breathed could not be read.
    for (const th of box.current?.querySelectorAll<HTMLElement>("th") ?? []) {
      th.style.minWidth = first > 0 ? `${th.offsetWidth}px` : "";
    }
  }, [first]);
  const gap = (rows: number) => rows > 0 && <tr class="gap" style={{ height: `${rows * high}px` }} />;
  return (
    <div
      class={long ? "table-box long" : "table-box"}
      tabIndex={0}
      role="region"
      aria-label={title}
      ref={box}
      onScroll={(event) => long && setTop(event.currentTarget.scrollTop)}
    >
      <table
        class={column ? "numbers last-wide" : "numbers"}
        {...(long ? { "aria-rowcount": count + heads } : {})}
      >
        <thead>{head}</thead>
        <tbody>
          {gap(first)}
          {Array.from({ length: Math.max(0, last - first) }, (_, i) => row(first + i))}
          {gap(count - last)}
        </tbody>
      </table>
    </div>
  );
}

function usePrinting(): boolean {
  const [printing, setPrinting] = useState(false);
  useEffect(() => {
    const [before, after] = [() => setPrinting(true), () => setPrinting(false)];
    addEventListener("beforeprint", before);
    addEventListener("afterprint", after);
    return () => {
      removeEventListener("beforeprint", before);
      removeEventListener("afterprint", after);
    };
  }, []);
  return printing;
}

interface HeadProps {
  title: string;
  /** Text stands at the left, numbers at the right. */
  isText: boolean;
  sorted: "ascending" | "descending" | "none";
  sort: () => void;
  /** Rows of the head that it spans. */
  rows?: number;
  /** A second line, such as the recording, and what it is in full. */
  below?: string | undefined;
  full?: string | undefined;
}

const ARROWS = { ascending: " ▴", descending: " ▾", none: "" };

export function SortHead({ title, isText, sorted, sort, rows = 1, below, full }: HeadProps) {
  return (
    <th class={isText ? "" : "number"} rowspan={rows} title={full} aria-sort={sorted}>
      <button type="button" onClick={sort}>
        <span>{title}</span>
        {ARROWS[sorted]}
        {below && <small class="side-name">{below}</small>}
      </button>
    </th>
  );
}

/** The filter in the address, which all tables obey. */
export function Filter({ example }: { example?: string }) {
  return (
    <input
      type="search"
      value={part("q") ?? ""}
      placeholder={example ? `Filter rows, such as ${example}` : "Filter rows"}
      aria-label="Filter rows"
      onInput={(event) => go({ q: event.currentTarget.value })}
    />
  );
}
