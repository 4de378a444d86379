/** A Section's figure, by its kind: bars, a ladder, a histogram, points on a scale, a machine. */
import { useRef } from "preact/hooks";
import type { Bar, BarGroup, FigureData } from "../data/types";
import { fillOf, levelState, STATE_NAMES } from "../draw/tokens";
import { amount, duration, percent } from "../maths/format";
import { Points } from "./Points";
import { Topology } from "./Topology";
import { useWidth } from "./useSize";

const ROW = 24;
const WIDTH = 860;

export function Drawing({ figure }: { figure: FigureData }) {
  if (figure.groups)
    return (
      <>
        {figure.groups.map((group) => (
          <Bars key={group.title} group={group} most={mostOf(figure.groups!, group.unit)} />
        ))}
      </>
    );
  if (figure.scales)
    return (
      <>
        {figure.scales.map((group) => (
          <Points key={group.title + group.unit} group={group} />
        ))}
      </>
    );
  if (figure.panels) return <Topology panels={figure.panels} />;
  if (figure.bins) return <Histogram bins={figure.bins} />;
  if (figure.rungs) return <Rungs rungs={figure.rungs} />;
  return <p class="soft">This page does not know how to draw "{figure.drawing}"; a newer kvmscope does.</p>;
}

function fill(hue: string): string {
  if (STATE_NAMES.includes(hue)) return fillOf(hue);
  return /^(L\d|VMM)$/.test(hue) ? fillOf(levelState(hue)) : "var(--soft)";
}

/** A row each; where there is no room beside the words, the bars lie below them. */
/** The longest bar of all groups with one unit: their bars have one scale. */
function mostOf(groups: BarGroup[], unit: string): number {
  const bars = groups.filter((group) => group.unit === unit).flatMap((group) => group.bars);
  return Math.max(...bars.map((bar) => bar.value), 1e-9);
}

function Bars({ group, most }: { group: BarGroup; most: number }) {
  const box = useRef<HTMLDivElement>(null);
  const width = Math.min(WIDTH, useWidth(box));
  const below = width < 600;
  const row = below ? ROW + 14 : ROW;
  const height = group.bars.length * row + 26;
  const wide = (bar: Bar) => Math.max(1.5, (bar.value / most) * (below ? width - 2 : width - 420));
  const [amountAt, shareAt] = below ? [width - 60, width] : [218, 278];
  return (
    <div ref={box}>
      <svg
        class="picture bars"
        viewBox={`0 0 ${width} ${height}`}
        style={{ maxWidth: `${WIDTH}px` }}
        role="img"
        aria-label={group.title}
      >
        <text x="0" y="15" font-weight="600">
          {group.title.replace(/ {2,}/g, ", ")}
        </text>
        {group.bars.map((bar, i) => (
          <g key={bar.label} transform={`translate(0 ${26 + i * row})`}>
            <text x="0" y="14">
              {bar.label}
            </text>
            <text x={amountAt} y="14" text-anchor="end">
              {amount(bar.value, group.unit)}
            </text>
            <text class="faint" x={shareAt} y="14" text-anchor="end">
              {group.total > 0 ? percent(bar.value / group.total) : ""}
            </text>
            <rect
              x={below ? 0 : 290}
              y={below ? 19 : 2}
              width={wide(bar)}
              height={below ? 10 : ROW - 8}
              fill={fill(bar.hue)}
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

function Histogram({ bins }: { bins: NonNullable<FigureData["bins"]> }) {
  const most = Math.max(1, ...bins.map((bin) => bin.count));
  const wide = WIDTH / Math.max(1, bins.length);
  return (
    <svg
      class="picture"
      viewBox={`0 0 ${WIDTH} 190`}
      style={{ maxWidth: `${WIDTH}px` }}
      role="img"
      aria-label="Histogram"
    >
      {bins.map((bin, i) => (
        <rect
          key={bin.from}
          x={i * wide}
          width={Math.max(1, wide - 1)}
          y={160 - (bin.count / most) * 150}
          height={(bin.count / most) * 150}
          fill="var(--ink)"
        >
          <title>{`${bin.from} to ${bin.to}: ${bin.count}`}</title>
        </rect>
      ))}
      <line x1="0" x2={WIDTH} y1="160" y2="160" stroke="var(--soft)" />
      <text class="faint" x="0" y="178">
        {bins[0]?.from}
      </text>
      <text class="faint" x={WIDTH} y="178" text-anchor="end">
        {bins.at(-1)?.to}
      </text>
    </svg>
  );
}

function Rungs({ rungs }: { rungs: NonNullable<FigureData["rungs"]> }) {
  const lanes = ["L3", "L2", "L1", "L0", "VMM"].filter((lane) => rungs.some((rung) => rung.lane === lane));
  const end = Math.max(1, ...rungs.map((rung) => rung.at_ns + rung.length_ns));
  const x = (ns: number) => 50 + (ns / end) * (WIDTH - 60);
  return (
    <svg
      class="picture"
      viewBox={`0 0 ${WIDTH} ${lanes.length * 40 + 24}`}
      style={{ maxWidth: `${WIDTH}px` }}
      role="img"
      aria-label="Ladder"
    >
      {lanes.map((lane, i) => (
        <text key={lane} x="0" y={i * 40 + 24} font-weight="600">
          {lane}
        </text>
      ))}
      {rungs.map((rung) => (
        <g key={`${rung.lane}${rung.at_ns}`}>
          <rect
            x={x(rung.at_ns)}
            y={lanes.indexOf(rung.lane) * 40 + 6}
            width={Math.max(1, x(rung.at_ns + rung.length_ns) - x(rung.at_ns))}
            height="28"
            fill={fillOf(levelState(rung.lane))}
          >
            <title>{`${rung.label}${rung.repeat > 1 ? ` ×${rung.repeat}` : ""}: ${duration(rung.length_ns)}`}</title>
          </rect>
        </g>
      ))}
      <text class="faint" x={WIDTH} y={lanes.length * 40 + 18} text-anchor="end">
        {duration(end)}
      </text>
    </svg>
  );
}
