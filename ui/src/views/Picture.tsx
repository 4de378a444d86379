/** The frame of a drawing with words in it: no wider than it was drawn, so that its words are not either. */
import type { ComponentChildren } from "preact";

interface Props {
  title: string;
  width: number;
  height: number;
  children: ComponentChildren;
}

/** As wide as most of them are at most. */
export const PICTURE = 860;

export function Picture({ title, width, height, children }: Props) {
  return (
    <svg
      class="picture"
      viewBox={`0 0 ${width} ${height}`}
      style={{ maxWidth: `${width}px` }}
      role="img"
      aria-label={title}
    >
      {children}
    </svg>
  );
}

/** An entry of a legend: what is drawn, and what it means. */
export function LegendEntry({ text, children }: { text: string; children: ComponentChildren }) {
  return (
    <li>
      <svg width="24" height="12" aria-hidden="true">
        {children}
      </svg>
      {text}
    </li>
  );
}
