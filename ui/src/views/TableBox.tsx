/** What tables share: a box that scrolls, the heads of columns that sort, and the filter of their rows. */
import type { ComponentChildren } from "preact";
import { go, hash } from "../state/store";

/** A table in a box of its own, so that a wide one does not widen the page. */
export function TableBox({ title, children }: { title: string; children: ComponentChildren }) {
  return (
    <div class="table-box" tabIndex={0} role="region" aria-label={title}>
      <table class="numbers">{children}</table>
    </div>
  );
}

interface HeadProps {
  title: string;
  /** Text stands at the left, numbers at the right. */
  isText: boolean;
  sorted: "ascending" | "descending" | "none";
  sort: () => void;
}

const ARROWS = { ascending: " ▴", descending: " ▾", none: "" };

export function SortHead({ title, isText, sorted, sort }: HeadProps) {
  return (
    <th class={isText ? "" : "number"} aria-sort={sorted}>
      <button type="button" onClick={sort}>
        {title}
        {ARROWS[sorted]}
      </button>
    </th>
  );
}

/** The filter in the address, which all tables obey. */
export function Filter({ example }: { example?: string }) {
  return (
    <input
      type="search"
      value={hash.value.q ?? ""}
      placeholder={example ? `Filter: ${example}` : "Filter rows"}
      aria-label="Filter rows"
      onInput={(event) => go({ q: event.currentTarget.value })}
    />
  );
}
