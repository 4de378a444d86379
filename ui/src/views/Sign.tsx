/** A single value of a picture: its shape says what it is, and a hollow one is not of a real machine. */
import type { Shape } from "../data/types";

/** A dot, where there is no other path. */
const PATHS: { [shape in Shape]?: string } = {
  published: "M-5 0L0-5L5 0L0 5Z",
  modelled: "M-5 0L0-5L5 0L0 5Z",
  bar: "M0-8V8",
  cross: "M-4-4L4 4M-4 4L4-4",
};

export function Sign({ shape, x, y, ink }: { shape: Shape; x: number; y: number; ink: string }) {
  return (
    <path
      d={PATHS[shape] ?? "M-4 0a4 4 0 1 0 8 0a4 4 0 1 0-8 0"}
      transform={`translate(${x} ${y})`}
      fill={shape === "emulated" || shape === "modelled" ? "none" : ink}
      stroke={ink}
      stroke-width="2"
    />
  );
}
