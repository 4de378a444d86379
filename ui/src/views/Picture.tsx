/** The frame of a drawing with words in it: no wider than `most`, so that its words are not either. */
import type { ComponentChildren } from "preact";

interface Props {
  title: string;
  width: number;
  height: number;
  most?: number;
  children: ComponentChildren;
}

/** As wide as most of them are at most. */
export const PICTURE = 860;

export function Picture({ title, width, height, most = PICTURE, children }: Props) {
  return (
    <svg
      class="picture"
      viewBox={`0 0 ${width} ${height}`}
      style={{ maxWidth: `${most}px` }}
      role="img"
      aria-label={title}
    >
      {children}
    </svg>
  );
}
