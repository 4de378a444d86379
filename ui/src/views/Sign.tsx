/** A single value of a picture: its shape says what it is, and a hollow one is not of a real machine. */
import type { Shape } from "../data/types";

/** Of several curves of values, each has its own, as in `crates/show/src/html/curves.rs`: those of ours by their outline. */
const OURS = [
  "M-4 0a4 4 0 1 0 8 0a4 4 0 1 0-8 0",
  "M0-5L4.5 3H-4.5Z",
  "M-3.5-3.5H3.5V3.5H-3.5Z",
  "M0 5L4.5-3H-4.5Z",
  "M5 0L-3 4.5V-4.5Z",
  "M-5 0L3 4.5V-4.5Z",
];

/** All others are diamonds, by what is in them. */
const DIAMOND = "M-5 0L0-5L5 0L0 5Z";
const INSIDE = ["", "M0-4V4", "M-4 0H4", "M0-4V4M-4 0H4", "M-2-2L2 2", "M-2 2L2-2"];

const PATHS: { [shape in Shape]?: string } = {
  published: DIAMOND,
  modelled: DIAMOND,
  bar: "M0-8V8",
  cross: "M-4-4L4 4M-4 4L4-4",
};

interface Props {
  shape: Shape;
  x: number;
  y: number;
  ink: string;
  /** Which of the curves that have this shape. */
  nth?: number;
  /** What it says to whoever points at it. */
  title?: string;
}

export function Sign({ shape, x, y, ink, nth = 0, title }: Props) {
  const path = PATHS[shape];
  const hollow = shape === "emulated" || shape === "modelled";
  const inside = path === DIAMOND ? INSIDE[nth % INSIDE.length]! : "";
  const transform = `translate(${x} ${y})`;
  return (
    <>
      <path
        d={path ?? OURS[nth % OURS.length]!}
        transform={transform}
        fill={hollow ? "none" : ink}
        stroke={ink}
        stroke-width="2"
        stroke-linejoin="round"
        // A hollow one is pointed at as a whole.
        pointer-events={title ? "all" : undefined}
      >
        {title && <title>{title}</title>}
      </path>
      {inside && (
        <path
          d={inside}
          transform={transform}
          stroke={hollow ? ink : "var(--page)"}
          stroke-width="1.5"
          pointer-events="none"
        />
      )}
    </>
  );
}
