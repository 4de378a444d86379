/** A Section's figure, by its kind: bars, points on a scale, curves, cells, a machine, ways, dials, stretches, levels, steps, pairs. */
import { useRef } from "preact/hooks";
import type { Bar, BarGroup, FigureData } from "../data/types";
import { hueOf } from "../draw/tokens";
import { amount, percent } from "../maths/format";
import { openTimeline, recording } from "../state/store";
import { Bins } from "./Bins";
import { Curves } from "./Curves";
import { Dumbbells } from "./Dumbbells";
import { Flows } from "./Flows";
import { Heat } from "./Heat";
import { Levels } from "./Levels";
import { Matrix } from "./Matrix";
import { Points } from "./Points";
import { RateDials } from "./RateDials";
import { Keys, Spans } from "./Spans";
import { Topology } from "./Topology";
import { useWidth } from "./useSize";
import { Waterfalls } from "./Waterfall";

const ROW = 24;
const HEAD = 26;
/** A character of a remark takes no more. */
const NOTE = 6.4;
const WIDTH = 860;

export function Drawing({ figure }: { figure: FigureData }) {
  switch (figure.drawing) {
    case "bars":
      return (
        <>
          {figure.groups.map((group) => (
            <Bars key={group.title} group={group} most={mostOf(figure.groups, group.unit)} />
          ))}
        </>
      );
    case "points":
      return (
        <>
          {figure.scales.map((group) => (
            <Points key={group.title + group.unit} group={group} />
          ))}
        </>
      );
    case "histogram":
      return <Bins title={figure.title} drawn={figure} />;
    case "curves":
      return <Curves title={figure.title} drawn={figure} />;
    case "heat":
      return <Heat title={figure.title} drawn={figure} />;
    case "topology":
      return <Topology title={figure.title} panels={figure.panels} />;
    case "flows":
      return <Flows flows={figure.flows} />;
    case "spans":
      return (
        <>
          {figure.spans.map((group) => (
            <Spans key={group.title} group={group} />
          ))}
          <Keys keys={figure.keys} />
        </>
      );
    case "levels":
      return <Levels title={figure.title} levels={figure} />;
    case "waterfall":
      return <Waterfalls wholes={figure.wholes} />;
    case "matrix":
      return <Matrix matrix={figure} />;
    case "dumbbells":
      return <Dumbbells groups={figure.dumbbells} looks={figure.looks} />;
    case "gauges":
      return <RateDials groups={figure.dials} />;
    default:
      return <Unknown drawing={figure} />;
  }
}

/** A report may be newer than the page that shows it; of the drawings that this page knows, none is left. */
function Unknown({ drawing }: { drawing: never }) {
  const { drawing: name } = drawing as { drawing: string };
  return <p class="soft">This page does not know how to draw "{name}"; a newer kvmscope does.</p>;
}

/** The longest bar of all groups with one unit: their bars have one scale. */
function mostOf(groups: BarGroup[], unit: string): number {
  const bars = groups.filter((group) => group.unit === unit).flatMap((group) => group.bars);
  return Math.max(...bars.map((bar) => bar.value), 1e-9);
}

/** A row each; where there is no room beside the words, the bars lie below them. */
function Bars({ group, most }: { group: BarGroup; most: number }) {
  const box = useRef<HTMLDivElement>(null);
  const width = Math.min(WIDTH, useWidth(box));
  const below = width < 600;
  const { span } = group;
  // What has a place on the timeline has a heading with a link there.
  const head = span ? 4 : HEAD;
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
          <text x="0" y="15" font-weight="600">
            {group.title.replace(/ {2,}/g, ", ")}
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
