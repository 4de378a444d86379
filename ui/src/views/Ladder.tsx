/** One chain drawn to time scale: rows are levels, time runs to the right, every exit of L1 is a step down to L0 and back. */

import { useRef } from "preact/hooks";
import type { ChainInFull, State } from "../data/types";
import { fillOf } from "../draw/tokens";
import { counted, duration, roundDuration } from "../maths/format";
import { folded, LADDER_LANES, labels, rails, spread, visible } from "../maths/ladder";
import { ticks } from "../maths/window";
import { useWidth } from "./useSize";

/** Where time begins, and what labels need behind its end. */
const LEFT = 52;
const RIGHT = 60;
const TOP = 22;
const ROW = 40;
const BOX = 30;
/** Between labels, which hang below the rows. */
const LABEL_GAP = 15;
const LEAD = 26;
/** Of a label's letters, which slant by this. */
const LETTER = 6.4;
const SLANT = 50;
/** Narrower ones scroll. */
const LEAST = 660;

interface Props {
  chain: ChainInFull;
  states: State[];
  /** Length that fills the width, so that two ladders share a scale. */
  full_ns: number;
}

export function Ladder({ chain, states, full_ns }: Props) {
  const box = useRef<HTMLDivElement>(null);
  const width = Math.max(LEAST, useWidth(box));
  const room = width - LEFT - RIGHT;
  const full = Math.max(1, full_ns);
  const length = chain.to_ns - chain.from_ns;
  const every = rails(chain, states);
  const spans = visible(every, full / room);
  const used = new Set(["L2", "L1", "L0", ...spans.map((span) => span.lane)]);
  const lanes = LADDER_LANES.filter((lane) => used.has(lane));
  const x = (ns: number) => LEFT + (ns / full) * room;
  const middle = (lane: string) => TOP + (lanes.indexOf(lane) + 0.5) * ROW;
  const bottom = TOP + lanes.length * ROW;
  const notes = folded(labels(every)).map((note) => ({
    ...note,
    words: `${note.text}${note.count > 1 ? ` ×${note.count}` : ""} ${duration(note.spent_ns)}`,
  }));
  const places = spread(
    notes.map((note) => x((note.from_ns + note.to_ns) / 2)),
    LABEL_GAP,
    width - RIGHT,
  );
  const longest = Math.max(0, ...notes.map(({ words }) => words.length)) * LETTER;
  const height = bottom + LEAD + 14 + longest * Math.sin((SLANT * Math.PI) / 180);
  const marks = ticks({ t0: 0, t1: length }, Math.max(2, Math.floor((x(length) - LEFT) / 90))).at;
  return (
    <div class="wide" ref={box} tabIndex={0} role="group" aria-label="Chain, drawn to scale">
      <svg
        class="picture ladder"
        viewBox={`0 0 ${width} ${height}`}
        style={{ minWidth: `${LEAST}px` }}
        role="img"
        aria-label={`Chain of ${duration(length)} with ${counted(chain.exits, "exit")} of L1`}
      >
        {marks.map((ns) => (
          <g key={ns}>
            <path d={`M${x(ns)} ${TOP - 4}V${bottom}`} stroke="var(--grid)" />
            <text class="faint" x={x(ns)} y={12} text-anchor={ns === 0 ? "start" : "middle"} font-size="10.5">
              {roundDuration(ns)}
            </text>
          </g>
        ))}
        {lanes.map((lane) => (
          <g key={lane}>
            <text x={0} y={middle(lane) + 4} font-weight="600">
              {lane}
            </text>
            <path d={`M${LEFT} ${middle(lane)}H${x(length)}`} stroke="var(--line)" />
          </g>
        ))}
        {spans.map((span, i) => {
          const before = spans[i - 1];
          return (
            <g key={span.from_ns}>
              {before && before.lane !== span.lane && (
                <path
                  d={`M${x(span.from_ns)} ${middle(before.lane)}V${middle(span.lane)}`}
                  stroke="var(--soft)"
                  stroke-width="0.7"
                />
              )}
              <rect
                x={x(span.from_ns)}
                width={Math.max(1, x(span.to_ns) - x(span.from_ns))}
                y={middle(span.lane) - BOX / 2}
                height={BOX}
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
              d={`M${x(note.from_ns)} ${bottom}H${Math.max(x(note.from_ns) + 1, x(note.to_ns))}M${x((note.from_ns + note.to_ns) / 2)} ${bottom}v5L${places[i]} ${bottom + LEAD - 6}v4`}
              stroke="var(--soft)"
              fill="none"
              stroke-width="0.8"
            />
            <text
              transform={`translate(${places[i]! - 2} ${bottom + LEAD + 8}) rotate(${SLANT})`}
              font-size="11.5"
            >
              {note.words}
            </text>
          </g>
        ))}
      </svg>
    </div>
  );
}
