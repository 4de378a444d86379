/** Two axes: lines with values up the page, values along it, and what both are of. */

/** A value of an axis and where it stands. */
export interface Tick {
  at: number;
  text: string;
}

interface Props {
  /** Where the plane begins, and where the axis along the page lies. */
  left: number;
  bottom: number;
  width: number;
  up: { title: string; ticks: Tick[] };
  along: { title: string; ticks: Tick[] };
}

/** A value along the page takes this much of its length. */
const MARK = 78;
/** Nearer to the edge of the picture than this, half of its words would be cut. */
const EDGE = 30;

export function Axes({ left, bottom, width, up, along }: Props) {
  const last = along.ticks.length - 1;
  const every = Math.ceil((MARK * along.ticks.length) / (width - left));
  return (
    <>
      <text class="faint" x="0" y="12">
        {up.title}
      </text>
      {up.ticks.map(({ at, text }) => (
        <g key={text}>
          <path d={`M${left} ${at}H${width}`} stroke="var(--grid)" />
          <text class="faint" x={left - 8} y={at + 4} text-anchor="end">
            {text}
          </text>
        </g>
      ))}
      {along.ticks.map(({ at, text }, i) =>
        i % every === 0 ? (
          <text
            class="faint"
            key={at}
            x={at}
            y={bottom + 16}
            text-anchor={
              i > 0 && i === last && at > width - EDGE ? "end" : i === 0 && at < EDGE ? "start" : "middle"
            }
          >
            {text}
          </text>
        ) : null,
      )}
      <text class="faint" x={left + (width - left) / 2} y={bottom + 33} text-anchor="middle">
        {along.title}
      </text>
    </>
  );
}
