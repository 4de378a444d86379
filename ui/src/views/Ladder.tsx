/** One chain drawn to time scale: columns are levels, time runs down, every exit of L1 is a rung. */

import type { ChainInFull, State } from "../data/types";
import { fillOf } from "../draw/tokens";
import { counted, duration } from "../maths/format";
import { folded, LADDER_LANES, labels, rails, spread, visible } from "../maths/ladder";

const TOP = 30;
const LABEL_GAP = 16;
const COLUMN = 50;

interface Props {
  chain: ChainInFull;
  states: State[];
  /** Length that fills the height, so that two ladders share a scale. */
  full_ns: number;
  height: number;
}

export function ladderHeight(chain: ChainInFull, states: State[]): number {
  return Math.max(380, TOP + 24 + (folded(labels(rails(chain, states))).length + 1) * LABEL_GAP);
}

export function Ladder({ chain, states, full_ns, height }: Props) {
  const every = rails(chain, states);
  const spans = visible(every, Math.max(1, full_ns) / (height - TOP - 14));
  const used = new Set(["L2", "L1", "L0", ...spans.map((span) => span.lane)]);
  const lanes = LADDER_LANES.filter((lane) => used.has(lane));
  const axis = 58;
  const right = axis + lanes.length * COLUMN;
  const width = right + 190;
  const room = height - TOP - 14;
  const y = (ns: number) => TOP + (ns / Math.max(1, full_ns)) * room;
  const x = (lane: string) => axis + lanes.indexOf(lane) * COLUMN + 6;
  const notes = folded(labels(every));
  const places = spread(
    notes.map((note) => y((note.from_ns + note.to_ns) / 2)),
    LABEL_GAP,
    height - 10,
  );
  const length = chain.to_ns - chain.from_ns;
  return (
    <svg
      class="picture ladder"
      viewBox={`0 0 ${width} ${height}`}
      style={{ maxWidth: `${width * 1.15}px` }}
      role="img"
      aria-label={`Chain of ${duration(length)} with ${counted(chain.exits, "exit")} of L1`}
    >
      {lanes.map((lane) => (
        <g key={lane}>
          <text x={x(lane) + (COLUMN - 12) / 2} y={16} text-anchor="middle" font-weight="600">
            {lane}
          </text>
          <line
            x1={x(lane) + (COLUMN - 12) / 2}
            x2={x(lane) + (COLUMN - 12) / 2}
            y1={TOP}
            y2={y(length)}
            stroke="var(--line)"
          />
        </g>
      ))}
      {[0, 0.25, 0.5, 0.75, 1].map((part) => (
        <g key={part}>
          <text class="faint" x={axis - 8} y={y(part * length) + 4} text-anchor="end" font-size="10.5">
            {duration(Math.round(part * length))}
          </text>
          <line x1={axis - 4} x2={right} y1={y(part * length)} y2={y(part * length)} stroke="var(--grid)" />
        </g>
      ))}
      {spans.map((span, i) => {
        const before = spans[i - 1];
        return (
          <g key={span.from_ns}>
            {before && before.lane !== span.lane && (
              <line
                x1={x(before.lane) + (COLUMN - 12) / 2}
                x2={x(span.lane) + (COLUMN - 12) / 2}
                y1={y(span.from_ns)}
                y2={y(span.from_ns)}
                stroke="var(--soft)"
                stroke-width="0.7"
              />
            )}
            <rect
              x={x(span.lane)}
              width={COLUMN - 12}
              y={y(span.from_ns)}
              height={Math.max(1, y(span.to_ns) - y(span.from_ns))}
              fill={fillOf(span.name)}
            >
              <title>{`${span.title}${span.detail ? `, ${span.detail}` : ""}: ${duration(span.to_ns - span.from_ns)}`}</title>
            </rect>
          </g>
        );
      })}
      {notes.map((note, i) => (
        <g key={note.from_ns}>
          <path
            d={`M${right - 4} ${y(note.from_ns)}V${Math.max(y(note.from_ns) + 1, y(note.to_ns))}M${right - 4} ${y((note.from_ns + note.to_ns) / 2)}H${right}L${right + 12} ${places[i]}H${right + 16}`}
            stroke="var(--soft)"
            fill="none"
            stroke-width="0.8"
          />
          <text x={right + 20} y={places[i]! + 4} font-size="11.5">
            {note.text}
            {note.count > 1 ? ` ×${note.count}` : ""} <tspan class="faint">{duration(note.spent_ns)}</tspan>
          </text>
        </g>
      ))}
    </svg>
  );
}
