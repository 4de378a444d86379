/** Bars with their words, a row each; where there is no room beside the words, the bars lie below them. */
import { useMemo, useRef, useState } from "preact/hooks";
import type { Bar, BarGroup } from "../data/types";
import { wrapped } from "../draw/frame";
import { hueOf } from "../draw/tokens";
import { amount, grouped, percent } from "../maths/format";
import { openTimeline, recording } from "../state/store";
import { useWidth } from "./useSize";

const ROW = 24;
const HEAD = 26;
/** A character of a remark takes no more. */
const NOTE = 6.4;
const WIDTH = 860;
/** A character of a title, which is bold, and a line of it. */
const TITLE = 7.6;
const LINE = 16;

/** A host has hundreds of vCPUs, each with a group: the first of them are the worst, the others one press away. */
const OPEN = 20;

/** Groups below each other, those of one unit on one scale. */
export function Bars({ groups }: { groups: BarGroup[] }) {
  const [all, setAll] = useState(false);
  const most = useMemo(() => new Map(groups.map(({ unit }) => [unit, mostOf(groups, unit)])), [groups]);
  // One more is drawn rather than hidden behind a line that is as high.
  const shown = all || groups.length <= OPEN + 1 ? groups : groups.slice(0, OPEN);
  return (
    <>
      {shown.map((group, i) => (
        <One key={`${i} ${group.title}`} group={group} most={most.get(group.unit)!} />
      ))}
      {groups.length > OPEN + 1 && (
        <button type="button" aria-expanded={all} onClick={() => setAll(!all)}>
          {all ? `Show the first ${OPEN}` : `Show ${grouped(groups.length - OPEN)} more`}
        </button>
      )}
    </>
  );
}

/** The longest bar of all groups with one unit: their bars have one scale. */
function mostOf(groups: BarGroup[], unit: string): number {
  const bars = groups.filter((group) => group.unit === unit).flatMap((group) => group.bars);
  return bars.reduce((most, bar) => Math.max(most, bar.value), 1e-9);
}

function One({ group, most }: { group: BarGroup; most: number }) {
  const box = useRef<HTMLDivElement>(null);
  const width = Math.min(WIDTH, useWidth(box));
  const below = width < 600;
  const { span } = group;
  // What has a place on the timeline has a heading with a link there.
  const title = wrapped(group.title.replace(/ {2,}/g, ", "), Math.floor(width / TITLE));
  const head = span ? 4 : HEAD + (title.length - 1) * LINE;
  const row = below ? ROW + 14 : ROW;
  const height = group.bars.length * row + head;
  const notes = Math.max(130, NOTE * Math.max(0, ...group.bars.map(({ note }) => note.length)));
  const wide = (bar: Bar) => Math.max(1.5, (bar.value / most) * (below ? width - 2 : width - 290 - notes));
  const [amountAt, shareAt] = below ? [width - 60, width] : [218, 278];
  return (
    <div ref={box}>
      {span && (
        <p>
          <b>{group.title}</b>{" "}
          {recording.value?.timeline && (
            <button
              type="button"
              class="link"
              aria-label={`See it on the timeline: ${group.title}`}
              onClick={() => openTimeline({ t0: span.from_ns, t1: span.to_ns }, group.title)}
            >
              timeline
            </button>
          )}
        </p>
      )}
      <svg
        class="picture bars"
        data-heading={span && group.title}
        viewBox={`0 0 ${width} ${height}`}
        style={{ maxWidth: `${WIDTH}px` }}
        role="img"
        aria-label={group.title}
      >
        {!span && (
          <text font-weight="600">
            {title.map((line, i) => (
              <tspan key={line} x="0" y={15 + i * LINE}>
                {i + 1 < title.length ? `${line} ` : line}
              </tspan>
            ))}
          </text>
        )}
        {group.bars.map((bar, i) => (
          <g key={bar.label} transform={`translate(0 ${head + i * row})`}>
            <text x="0" y="14">
              {bar.label}
            </text>
            <text x={amountAt} y="14" text-anchor="end">
              {amount(bar.value, group.unit)}
            </text>
            <text class="faint" x={shareAt} y="14" text-anchor="end">
              {group.total > 0 && group.unit !== "share" ? percent(bar.value / group.total) : ""}
            </text>
            <rect
              x={below ? 0 : 290}
              y={below ? 19 : 2}
              width={wide(bar)}
              height={below ? 10 : ROW - 8}
              fill={hueOf(bar.hue)}
              stroke="var(--soft)"
              stroke-width="0.5"
            />
            {bar.note && !below && (
              <text class="faint" x={298 + wide(bar)} y="14" font-size="11">
                {bar.note}
              </text>
            )}
          </g>
        ))}
      </svg>
    </div>
  );
}
