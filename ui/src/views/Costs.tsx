/** View 'Costs': does the cost of chains and exits move with time, and how bad are the tails? */
import { useEffect, useRef } from "preact/hooks";
import type { Recording } from "../data/source";
import type { Aggregates, Chain, Report } from "../data/types";
import { standalone } from "../draw/export";
import { token } from "../draw/tokens";
import { binsByRow, keyOf } from "../maths/bins";
import { apart, type Curve, curveOfBins, curveOfShares, pathOf, rangeOf } from "../maths/curve";
import { counted, duration, instant, marksOf, roundDuration } from "../maths/format";
import { cellAt, costAt, nearest, strength, timeAt } from "../maths/heat";
import { decades, logPlace, marks, ninesPlace, shareAt } from "../maths/quantile";
import { csv, number, rowsOf, sorted, tableOf, text } from "../maths/rows";
import { ticks } from "../maths/window";
import { witnessed } from "../maths/witness";
import { go, notice, show, theme } from "../state/store";
import { Empty, Figure } from "./Figure";
import { limitsOf, SeenBy, seenBy } from "./SeenBy";
import { useAnswer } from "./useAnswer";
import { shareAlong, useBrush } from "./useBrush";
import { usePrinted } from "./usePrinted";
import { useReport, useWindow } from "./useReport";
import { useWidth } from "./useSize";

const LEFT = 62;
const ROW_PIXELS = 6;
/** A mark of time takes this much; what stands below the picture, and how near to its edge words stand inside. */
const TIME_PIXELS = 110;
const AXIS = 40;
const EDGE = 30;
const CURVES = 5;
/** Chains of one column that are looked through for the one nearest to a click. */
const NEAR = 1000;

export function Costs({ recording }: { recording: Recording }) {
  const { report, note } = useReport(recording);
  const narrow = useWindow();
  const { value, error } = useAnswer(
    async () => (await recording.aggregates(narrow)) ?? recording.aggregates(null),
    [recording, narrow?.t0, narrow?.t1],
  );
  if (error) return <Empty title="The chains cannot be read">{error}</Empty>;
  const sums = value && undisturbedOf(value) > 0 ? value : null;
  const whole =
    narrow && recording.inlined
      ? "This picture is of the whole recording; a report file has none for a window."
      : "";
  return (
    <>
      {sums ? (
        <Heat sums={sums} recording={recording} note={whole} />
      ) : (
        value !== null && (
          <Empty title="No chain to plot over time">
            {value.disturbed > 0
              ? `L1 halted or L2 moved in ${counted(value.disturbed, "chain")}, all that ended: the cost of an exit is unknown.`
              : narrow
                ? "No complete chain begins in this window."
                : "The heat map shows the cost of every exit of L2 that was reflected to L1. Record at L0 while an L2 guest runs."}
          </Empty>
        )
      )}
      {value === null && recording.inlined && (
        <Empty title="No chain to plot over time">This report file has no sums over chains.</Empty>
      )}
      <Percentiles report={report} note={note} sums={sums} />
    </>
  );
}

/** Chains whose cost is that of one exit of L2. */
export function undisturbedOf({ chains, censored, disturbed }: Aggregates): number {
  return chains - censored - disturbed;
}

/** Words at the edge of a picture stand inside it. */
function anchorOf(x: number, width: number): "start" | "middle" | "end" {
  return x < EDGE ? "start" : x > width - EDGE ? "end" : "middle";
}

/** Chains that begin near a time, else some. */
async function around(recording: Recording, sums: Aggregates, at: number): Promise<Chain[]> {
  const half = timeAt(sums, 1) - timeAt(sums, 0);
  const window = { t0: Math.max(0, Math.floor(at - half)), t1: Math.ceil(at + half) };
  const near = await recording.chains({ ...window, sort: "time", limit: NEAR });
  return near.chains.length > 0
    ? near.chains
    : (await recording.chains({ sort: "time", limit: NEAR })).chains;
}

function Heat({ sums, recording, note }: { sums: Aggregates; recording: Recording; note: string }) {
  const box = useRef<HTMLDivElement>(null);
  const canvas = useRef<HTMLCanvasElement>(null);
  const { heat, t0_ns, t1_ns } = sums;
  const { columns, rows, from_ns, to_ns, cells } = heat;
  const width = Math.max(columns, useWidth(box) - LEFT);
  const wide = width / columns;
  const most = cells.reduce((most, [, count]) => Math.max(most, count), 1);
  const height = rows * ROW_PIXELS;
  const step = (t1_ns - t0_ns) / 100;
  const count = undisturbedOf(sums);
  const costs = marks(from_ns, to_ns);
  const times = ticks({ t0: t0_ns, t1: t1_ns }, Math.max(2, Math.floor(width / TIME_PIXELS)));
  const words = marksOf(t0_ns, t1_ns, times.step);
  const upOf = (size: number) => logPlace(size, from_ns, to_ns) * height;
  const alongOf = (ns: number) => ((ns - t0_ns) / (t1_ns - t0_ns)) * width;
  const title = `time${words.base ? `, after ${words.base}` : ""}`;
  const draw = () => {
    const context = canvas.current?.getContext("2d");
    if (!context || !canvas.current) return;
    canvas.current.width = width;
    canvas.current.height = height;
    context.fillStyle = token("panel", theme.value);
    context.fillRect(0, 0, width, height);
    context.fillStyle = token("line", theme.value);
    for (const size of costs) context.fillRect(0, Math.round(height - upOf(size)), width, 1);
    for (const ns of times.at) context.fillRect(Math.round(alongOf(ns)), 0, 1, height);
    context.fillStyle = token("ramp-1", theme.value);
    for (const [i, count] of cells) {
      const { row, column } = cellAt(heat, i);
      const [left, right] = [Math.round(column * wide), Math.round((column + 1) * wide)];
      context.globalAlpha = strength(count, most);
      context.fillRect(left, height - (row + 1) * ROW_PIXELS, Math.max(1, right - left - 1), ROW_PIXELS - 1);
    }
    context.globalAlpha = 1;
  };
  useEffect(draw);
  usePrinted(draw);
  const pick = async (event: PointerEvent) => {
    const rect = canvas.current!.getBoundingClientRect();
    const at = timeAt(sums, shareAlong(event) * columns);
    const size = costAt(heat, (1 - (event.clientY - rect.top) / rect.height) * rows);
    const found = nearest(sums, await around(recording, sums, at), at, size);
    if (found === null) notice.value = "There is no chain at this place.";
    else go({ view: "chains", chain: found.id }, true);
  };
  const { drag, handlers } = useBrush({
    span: ({ from, to }) => show({ t0: timeAt(sums, from * columns), t1: timeAt(sums, to * columns) }),
    click: (event) => void pick(event),
  });
  const held = recording.chainsHeld;
  const click =
    held === null
      ? "Click to open the nearest chain, drag to narrow all views to a time."
      : `Click to open the nearest of the ${counted(held, "chain")} that this file contains in full, drag to narrow all views to a time.`;
  const aside = [
    sums.disturbed > 0
      ? `Not drawn: ${counted(sums.disturbed, "disturbed chain")}, in which L1 halted or L2 moved to another vCPU; such a cost is not that of one exit.`
      : "",
    sums.censored > 0 ? `Not drawn: ${counted(sums.censored, "chain")} whose end was not recorded.` : "",
  ];
  return (
    <Figure
      id="heat"
      title="Does the cost of a chain change over time?"
      note={note}
      svg={() => {
        const labels = costs.map((size) => {
          const y = (height - upOf(size)).toFixed(1);
          return `<path d="M${LEFT} ${y}h${width}" stroke="var(--line)"/><text x="${LEFT - 8}" y="${Number(y) + 4}" text-anchor="end" font-size="11" fill="var(--soft)">${roundDuration(size)}</text>`;
        });
        const ends = times.at.map((ns) => {
          const x = (LEFT + alongOf(ns)).toFixed(1);
          return `<path d="M${x} 0v${height}" stroke="var(--line)"/><text x="${x}" y="${height + 16}" text-anchor="${anchorOf(alongOf(ns), width)}" font-size="11" fill="var(--soft)">${words.of(ns)}</text>`;
        });
        const named = `<text x="${LEFT + width / 2}" y="${height + 32}" text-anchor="middle" font-size="11" fill="var(--soft)">${title}; up: cost of a chain, logarithmic</text>`;
        const boxes = cells.map(([i, count]) => {
          const { row, column } = cellAt(heat, i);
          const y = height - (row + 1) * ROW_PIXELS;
          return `<rect x="${(LEFT + column * wide).toFixed(1)}" y="${y}" width="${Math.max(0.5, wide - 1).toFixed(1)}" height="${ROW_PIXELS - 1}" fill="var(--ramp-1)" opacity="${strength(count, most).toFixed(2)}"/>`;
        });
        return standalone([...labels, ...ends, ...boxes, named].join(""), LEFT + width, height + 40);
      }}
      csv={() =>
        csv(
          ["from_ns", "to_ns", "cost_from_ns", "cost_to_ns", "chains"],
          cells.map(([i, count]) => {
            const { row, column } = cellAt(heat, i);
            const times = [timeAt(sums, column), timeAt(sums, column + 1)];
            const costs = [costAt(heat, row), costAt(heat, row + 1)];
            return [...times.map(Math.round), ...costs.map(Math.round), count];
          }),
        )
      }
      caption={[
        `${counted(count, "chain")} between ${instant(t0_ns, step)} and ${instant(t1_ns, step)}: half cost at most ${duration(shareAt(sums.shares, 0.5))}${count >= 100 ? `, 1 % more than ${duration(shareAt(sums.shares, 0.99))}` : ""}. Stronger cells contain more chains. ${click}`,
        ...aside,
      ]
        .filter(Boolean)
        .join(" ")}
      tools={
        sums.worst && (
          <button
            type="button"
            onClick={() => {
              const { from_ns, to_ns } = sums.worst!;
              const rim = Math.max(1000, to_ns - from_ns);
              show({ t0: from_ns - rim, t1: to_ns + rim });
            }}
          >
            zoom to the worst
          </button>
        )
      }
    >
      <div class="heat" ref={box} style={{ paddingLeft: `${LEFT}px` }}>
        {costs.map((size) => (
          <span
            class="heat-label"
            key={size}
            style={{
              bottom: `${upOf(size) + AXIS}px`,
              width: `${LEFT - 8}px`,
            }}
          >
            {roundDuration(size)}
          </span>
        ))}
        <canvas
          ref={canvas}
          style={{ height: `${height}px` }}
          {...handlers}
          role="img"
          aria-label="Heat map of chain costs over time"
        />
        {drag && (
          <i
            class="brush"
            style={{
              left: `${LEFT + drag.from * width}px`,
              width: `${(drag.to - drag.from) * width}px`,
              height: `${height}px`,
            }}
          />
        )}
        <p class="heat-axis" style={{ height: `${AXIS}px` }}>
          {times.at.map((ns) => (
            <span key={ns} class={anchorOf(alongOf(ns), width)} style={{ left: `${alongOf(ns)}px` }}>
              {words.of(ns)}
            </span>
          ))}
          <b>{title}; up: cost of a chain, logarithmic</b>
        </p>
      </div>
    </Figure>
  );
}

function Percentiles({ report, note, sums }: { report: Report; note: string; sums: Aggregates | null }) {
  const seen = { report, rows: rowsOf(tableOf(report, "flow.exits")) };
  const rows = sorted(witnessed(report, seen.rows, seenBy(seen)), "total_ns", true).slice(0, CURVES);
  const bins = binsByRow(rowsOf(tableOf(report, "flow.exit_bins")));
  const curves: Curve[] = rows.flatMap((row) => {
    const title = `${text(row, "level")} ${text(row, "reason")}${number(row, "vcpu") > 0 ? `, vCPU ${text(row, "vcpu")}` : ""}`;
    return curveOfBins(title, bins.get(keyOf(row)) ?? [], number(row, "max_ns"));
  });
  if (sums) curves.unshift(...curveOfShares("chains, L2 back to L2", sums.shares, undisturbedOf(sums)));
  const range = rangeOf(curves);
  if (!range) {
    return (
      <Empty title="No exit has a duration">
        {rows.length > 0 ? "No entry was recorded after an exit." : "No exit was recorded."}
      </Empty>
    );
  }
  return <Curves curves={curves} range={range} note={note} chains={sums !== null} seen={seen} />;
}

function Curves({
  curves,
  range: { from, to },
  note,
  chains,
  seen,
}: {
  curves: Curve[];
  range: { from: number; to: number };
  note: string;
  chains: boolean;
  seen: Parameters<typeof SeenBy>[0];
}) {
  const box = useRef<HTMLDivElement>(null);
  const width = useWidth(box);
  const nines = Math.max(2, Math.ceil(Math.log10(2 * Math.max(...curves.map((curve) => curve.count)))));
  const height = 320;
  const right = width < 600 ? 12 : 190;
  const x = (share: number) => LEFT + ninesPlace(share, nines) * (width - LEFT - right);
  const y = (value: number) => height - 28 - logPlace(value, from, to) * (height - 44);
  const dashes = ["", "7 4", "2 3", "10 3 2 3", "4 2", "1 4"];
  const ends = curves.map((curve) => y(curve.points.at(-1)![1]));
  const places = apart(ends, 15);
  const worst = curves[0]!;
  return (
    <Figure
      id="percentiles"
      title="How bad are the tails?"
      note={note}
      csv={() =>
        csv(
          ["curve", "quantile", "ns"],
          curves.flatMap((curve) => curve.points.map(([share, value]) => [curve.title, share, value])),
        )
      }
      caption={`${worst.title}: half within ${duration(worst.points.find(([share]) => share >= 0.5)?.[1] ?? 0)}, the longest ${duration(worst.points.at(-1)![1])}. ${chains ? "The thick line shows all complete, undisturbed chains, the dot behind its end the longest one; the" : "The"} steps show the most expensive exits, from exit to next entry, at the upper ends of their histogram bins.${limitsOf(seen)}`}
      tools={<SeenBy {...seen} />}
    >
      <div ref={box}>
        <svg
          class="picture"
          viewBox={`0 0 ${width} ${height}`}
          height={height}
          role="img"
          aria-label="Quantiles of costs"
        >
          {decades(from, to).map((size) => (
            <g key={size}>
              <line x1={LEFT} x2={width - right} y1={y(size)} y2={y(size)} stroke="var(--grid)" />
              <text class="faint" x={LEFT - 8} y={y(size) + 4} text-anchor="end">
                {roundDuration(size)}
              </text>
            </g>
          ))}
          {[0, 0.5, 0.9, 0.99, 0.999, 0.9999]
            .filter((share) => ninesPlace(share, nines) < 1)
            .map((share) => (
              <g key={share}>
                <line x1={x(share)} x2={x(share)} y1={16} y2={height - 28} stroke="var(--grid)" />
                <text class="faint" x={x(share)} y={height - 10} text-anchor="middle">
                  {share === 0 ? "min" : `p${share * 100}`}
                </text>
              </g>
            ))}
          {curves.map((curve, i) => (
            <g key={curve.title}>
              <path
                d={pathOf(curve, x, y)}
                fill="none"
                stroke={curve.whole ? "var(--ink)" : "var(--soft)"}
                stroke-width={curve.whole ? 2.4 : 1.4}
                stroke-dasharray={dashes[i % dashes.length]}
              />
              {curve.points.map(([share, value]) => (
                <circle
                  key={share}
                  cx={x(share)}
                  cy={y(value)}
                  r={curve.whole ? 2 : 3}
                  fill={curve.whole ? "var(--ink)" : "var(--page)"}
                  stroke="var(--soft)"
                >
                  <title>{`${curve.title}: ${duration(value)}`}</title>
                </circle>
              ))}
              {right > 50 && (
                <>
                  <line
                    x1={x(curve.points.at(-1)![0]) + 5}
                    x2={width - right + 6}
                    y1={ends[i]}
                    y2={places[i]}
                    stroke="var(--line)"
                  />
                  <text x={width - right + 10} y={places[i]! + 4} font-weight={curve.whole ? 600 : 400}>
                    {curve.title}
                  </text>
                </>
              )}
            </g>
          ))}
        </svg>
      </div>
    </Figure>
  );
}
