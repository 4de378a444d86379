/** View 'Latency': does the cost move with time, and how bad are the tails? */
import { useEffect, useRef } from "preact/hooks";
import type { Recording } from "../data/source";
import type { Chain, Report } from "../data/types";
import { standalone } from "../draw/export";
import { token } from "../draw/tokens";
import { counted, duration, instant } from "../maths/format";
import { decades, heat, logPlace, marks, ninesPlace, quantile } from "../maths/quantile";
import { csv, number, rowsOf, sorted, text } from "../maths/rows";
import { go, show, shown, theme } from "../state/store";
import { tableOf } from "./Exits";
import { Empty, Figure } from "./Figure";
import { useChains } from "./useChains";
import { useReport } from "./useReport";
import { useWidth } from "./useSize";

const ROW_PIXELS = 6;
const ROWS = 36;
const LEFT = 62;
const CURVES = 5;

export function Latency({ recording }: { recording: Recording }) {
  const { report, note, window } = useReport(recording);
  const { value, error } = useChains(recording, window);
  if (error) return <Empty title="No chain was read">{error}</Empty>;
  const closed = value?.chains.filter((chain) => chain.cost_ns !== null) ?? [];
  return (
    <>
      {value &&
        (closed.length > 0 ? (
          <Heat chains={closed} left={value.total - value.chains.length} />
        ) : (
          <Empty title="No chain to plot over time">
            {window
              ? "No chain lies in this span of time."
              : "The heat map shows what each reflected exit of L2 cost. Record at L0 while a nested guest runs to get them."}
          </Empty>
        ))}
      <Percentiles report={report} note={note} chains={closed} />
    </>
  );
}

/** Brendan Gregg's heat maps raise counts to 0.4 or so: single outliers stay visible beside the bulk. */
function strength(count: number, most: number): number {
  return Math.max(0.16, (count / most) ** 0.4);
}

function Heat({ chains, left }: { chains: Chain[]; left: number }) {
  const box = useRef<HTMLDivElement>(null);
  const canvas = useRef<HTMLCanvasElement>(null);
  const width = useWidth(box);
  const window = shown.value;
  const columns = Math.max(20, Math.floor((width - LEFT) / ROW_PIXELS));
  const samples = chains.map((chain) => ({ at: chain.from_ns, size: chain.cost_ns! }));
  const grid = heat(samples, window.t0, window.t1, columns, ROWS);
  const inside = samples
    .filter((it) => it.at >= window.t0 && it.at < window.t1)
    .map((it) => it.size)
    .sort((a, b) => a - b);
  const height = ROWS * ROW_PIXELS;
  useEffect(() => {
    const context = canvas.current?.getContext("2d");
    if (!context || !canvas.current) return;
    canvas.current.width = columns * ROW_PIXELS;
    canvas.current.height = height;
    context.fillStyle = token("panel", theme.value);
    context.fillRect(0, 0, canvas.current.width, height);
    context.fillStyle = token("ramp-1", theme.value);
    for (let row = 0; row < ROWS; row++) {
      for (let column = 0; column < columns; column++) {
        const count = grid.counts[row * columns + column]!;
        if (count === 0) continue;
        context.globalAlpha = strength(count, grid.most);
        context.fillRect(
          column * ROW_PIXELS,
          height - (row + 1) * ROW_PIXELS,
          ROW_PIXELS - 1,
          ROW_PIXELS - 1,
        );
      }
    }
    context.globalAlpha = 1;
  });
  const pick = (event: MouseEvent) => {
    const rect = canvas.current!.getBoundingClientRect();
    const at = window.t0 + ((event.clientX - rect.left) / rect.width) * (window.t1 - window.t0);
    const row = (1 - (event.clientY - rect.top) / rect.height) * ROWS;
    const size = grid.from * (grid.to / grid.from) ** (row / ROWS);
    const span = window.t1 - window.t0;
    const far = (chain: Chain) =>
      ((chain.from_ns - at) / span) ** 2 +
      (logPlace(chain.cost_ns!, grid.from, grid.to) - logPlace(size, grid.from, grid.to)) ** 2;
    const nearest = chains.reduce((best, chain) => (far(chain) < far(best) ? chain : best));
    go({ view: "chains", chain: nearest.id }, true);
  };
  return (
    <Figure
      id="heat"
      title="Does the cost of a chain move with time?"
      svg={() => {
        const labels = marks(grid.from, grid.to).map(
          (size) =>
            `<text x="${LEFT - 8}" y="${(height - logPlace(size, grid.from, grid.to) * height + 4).toFixed(1)}" text-anchor="end" font-size="11" fill="var(--soft)">${duration(size)}</text>`,
        );
        const ends = [
          `<text x="${LEFT}" y="${height + 16}" font-size="11" fill="var(--soft)">${instant(window.t0, 1e6)}</text>`,
          `<text x="${LEFT + columns * ROW_PIXELS}" y="${height + 16}" text-anchor="end" font-size="11" fill="var(--soft)">${instant(window.t1, 1e6)}</text>`,
        ];
        const cells: string[] = [];
        for (const [i, count] of grid.counts.entries()) {
          if (count === 0) continue;
          const y = height - (Math.floor(i / columns) + 1) * ROW_PIXELS;
          cells.push(
            `<rect x="${LEFT + (i % columns) * ROW_PIXELS}" y="${y}" width="${ROW_PIXELS - 1}" height="${ROW_PIXELS - 1}" fill="var(--ramp-1)" opacity="${strength(count, grid.most).toFixed(2)}"/>`,
          );
        }
        return standalone([...labels, ...ends, ...cells].join(""), LEFT + columns * ROW_PIXELS, height + 24);
      }}
      csv={() =>
        csv(
          ["from_ns", "cost_ns", "reason"],
          chains.map((chain) => [chain.from_ns, chain.cost_ns, chain.reason]),
        )
      }
      caption={`${counted(inside.length, "chain")} between ${instant(window.t0, 1e6)} and ${instant(window.t1, 1e6)}: half cost ${duration(quantile(inside, 0.5))} or less, 1 % more than ${duration(quantile(inside, 0.99))}. Darker means more chains in that cell; click opens the nearest chain.${left > 0 ? ` ${counted(left, "later chain")} are not shown.` : ""}`}
      tools={
        <button
          type="button"
          onClick={() => {
            const worst = chains.reduce((a, b) => (b.cost_ns! > a.cost_ns! ? b : a));
            show({ t0: worst.from_ns - 2e7, t1: worst.to_ns + 2e7 });
          }}
        >
          zoom to the worst
        </button>
      }
    >
      <div class="heat" ref={box} style={{ paddingLeft: `${LEFT}px` }}>
        {marks(grid.from, grid.to).map((size) => (
          <span
            class="heat-label"
            key={size}
            style={{
              bottom: `${logPlace(size, grid.from, grid.to) * height + 22}px`,
              width: `${LEFT - 8}px`,
            }}
          >
            {duration(size)}
          </span>
        ))}
        <canvas
          ref={canvas}
          style={{ height: `${height}px` }}
          onClick={pick}
          role="img"
          aria-label="Heat map of chain costs over time"
        />
        <p class="heat-axis">
          <span>{instant(window.t0, 1e6)}</span>
          <span>{instant(window.t1, 1e6)}</span>
        </p>
      </div>
    </Figure>
  );
}

interface Curve {
  title: string;
  count: number;
  points: [number, number][];
  whole: boolean;
}

/** Shares at which a curve of samples is drawn: up to its last sample. */
function curveOf(title: string, values: number[]): Curve {
  const ordered = [...values].sort((a, b) => a - b);
  const shares = [0, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.98, 0.99, 0.995, 0.999, 0.9995, 0.9999];
  const kept = shares.filter((share) => 1 - share >= 1 / ordered.length - 1e-9);
  const points = kept.map((share): [number, number] => [share, quantile(ordered, share)]);
  points.push([1 - 0.5 / ordered.length, ordered.at(-1)!]);
  return { title, count: values.length, points, whole: true };
}

function Percentiles({ report, note, chains }: { report: Report; note: string; chains: Chain[] }) {
  const rows = sorted(rowsOf(tableOf(report, "exits")), "total_ns", true).slice(0, CURVES);
  const curves: Curve[] = rows.map((row) => ({
    title: `${text(row, "level")} ${text(row, "reason")}${number(row, "vcpu") > 0 ? `, vCPU ${text(row, "vcpu")}` : ""}`,
    count: number(row, "count"),
    whole: false,
    points: (
      [
        [0.5, "p50_ns"],
        [0.9, "p90_ns"],
        [0.99, "p99_ns"],
      ] as const
    )
      .map(([share, name]): [number, number] => [share, number(row, name)])
      .concat([[1 - 0.5 / Math.max(1, number(row, "count")), number(row, "max_ns")]])
      .sort((a, b) => a[0] - b[0] || a[1] - b[1]),
  }));
  if (chains.length > 1)
    curves.unshift(
      curveOf(
        "chains, L2 back to L2",
        chains.map((chain) => chain.cost_ns!),
      ),
    );
  return curves.length > 0 ? <Curves curves={curves} note={note} chains={chains.length > 1} /> : null;
}

function Curves({ curves, note, chains }: { curves: Curve[]; note: string; chains: boolean }) {
  const box = useRef<HTMLDivElement>(null);
  const width = useWidth(box);
  const nines = Math.max(2, Math.ceil(Math.log10(2 * Math.max(...curves.map((curve) => curve.count)))));
  const values = curves
    .flatMap((curve) => curve.points.map(([, value]) => value))
    .filter((value) => value > 0);
  const from = 10 ** Math.floor(Math.log10(Math.min(...values)));
  const to = 10 ** Math.ceil(Math.log10(Math.max(...values)));
  const height = 320;
  const right = width < 600 ? 12 : 190;
  const x = (share: number) => LEFT + ninesPlace(share, nines) * (width - LEFT - right);
  const y = (value: number) => height - 28 - logPlace(value, from, to) * (height - 44);
  const dashes = ["", "7 4", "2 3", "10 3 2 3", "4 2", "1 4"];
  const ends = curves.map((curve) => y(curve.points.at(-1)![1]));
  const order = ends.map((_, i) => i).sort((a, b) => ends[a]! - ends[b]!);
  const places: number[] = [];
  let last = -99;
  for (const i of order) {
    last = Math.max(ends[i]!, last + 15);
    places[i] = last;
  }
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
      caption={`${worst.title}: half within ${duration(worst.points.find(([share]) => share >= 0.5)?.[1] ?? 0)}, the longest ${duration(worst.points.at(-1)![1])}. ${chains ? "The strong line is every chain; the" : "The"} others are the dearest exits by their p50, p90, p99 and maximum, from exit to next entry.`}
    >
      <div ref={box}>
        <svg
          class="picture"
          viewBox={`0 0 ${width} ${height}`}
          height={height}
          role="img"
          aria-label="Quantiles of latencies"
        >
          {decades(from, to).map((size) => (
            <g key={size}>
              <line x1={LEFT} x2={width - right} y1={y(size)} y2={y(size)} stroke="var(--grid)" />
              <text class="faint" x={LEFT - 8} y={y(size) + 4} text-anchor="end">
                {duration(size)}
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
              <polyline
                points={curve.points.map(([share, value]) => `${x(share)},${y(value)}`).join(" ")}
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
