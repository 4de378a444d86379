/** View 'Multiplication': which exits of L1 does one exit of L2 cause? */
import { useRef, useState } from "preact/hooks";
import type { Recording } from "../data/source";
import { counted, grouped, percent } from "../maths/format";
import { type Band, bandsOf, ribbon, ribbons, stops, undisturbedChains } from "../maths/multiplication";
import { csv, number, rowsOf, tableOf } from "../maths/rows";
import { witnessed } from "../maths/witness";
import { Empty, Figure } from "./Figure";
import { useReport } from "./useReport";
import { useWidth } from "./useSize";

const GAP = 12;
const NODE = 14;

export function Multiplication({ recording }: { recording: Recording }) {
  const { report, note, window: narrow } = useReport(recording);
  const bands = bandsOf(witnessed(report, rowsOf(tableOf(report, "flow.chain_exits"))));
  const [hover, setHover] = useState<Band | null>(null);
  const box = useRef<HTMLDivElement>(null);
  const width = useWidth(box);
  if (bands.length === 0) {
    return (
      <Empty title="No exit of L2 was reflected to L1">
        {narrow
          ? "None in this window; clear or move it to see others."
          : "Run kvmscope record at L0 while an L2 guest runs: it records kvm_nested_vmexit_inject, the event of such an exit."}
      </Empty>
    );
  }
  const rows = witnessed(report, rowsOf(tableOf(report, "flow.chains")));
  const chains = undisturbedChains(rows);
  const disturbed = rows.reduce((sum, row) => sum + number(row, "disturbed"), 0);
  const names = Math.max(
    new Set(bands.map((band) => band.from)).size,
    new Set(bands.map((band) => band.to)).size,
  );
  const height = Math.max(300, names * 30 + 120);
  const left = stops(bands, "from", height, GAP);
  const right = stops(bands, "to", height, GAP);
  const label = width < 600 ? 108 : 230;
  const x0 = label;
  const x1 = width - label;
  const total = bands.reduce((sum, band) => sum + band.value, 0);
  const all = [...chains.values()].reduce((a, b) => a + b, 0);
  const most = bands[0]!;
  const ratio = (band: Band) => (band.value / Math.max(1, chains.get(band.from) ?? 1)).toFixed(1);
  return (
    <Figure
      id="multiplication"
      title="Which exits of L1 does one exit of L2 cause?"
      note={note}
      csv={() =>
        csv(
          ["l2_reason", "l1_exit", "count"],
          bands.map((band) => [band.from, band.to, band.value]),
        )
      }
      caption={
        hover
          ? `${hover.from} at L2 caused ${grouped(hover.value)} × ${hover.to} at L1, ${ratio(hover)} per exit of L2.`
          : `${counted(all, "exit")} of L2, reflected to L1, caused ${counted(total, "exit")} of L1, ${(total / Math.max(1, all)).toFixed(1)} per exit of L2. The widest band, from ${most.from} at L2 to ${most.to} at L1, is ${percent(most.value / total)} of them. Measured, over all complete chains of this ${narrow ? "window" : "recording"}${disturbed > 0 ? ` but ${grouped(disturbed)} in which L1 halted or L2 moved` : ""}.`
      }
    >
      <div ref={box}>
        <svg
          class="picture"
          viewBox={`0 -26 ${width} ${height + 34}`}
          height={height + 34}
          role="img"
          aria-label="Exits of L2 by reason, and the exits of L1 that they caused"
        >
          <text x={x0} y={-12} text-anchor="end" font-weight="600">
            {width < 600 ? "Exit of L2" : "Reason of L2's exit"}
          </text>
          <text x={x1} y={-12} font-weight="600">
            Exits of L1
          </text>
          {ribbons(bands, left, right).map(({ band, left: [a0, a1], right: [b0, b1] }) => {
            const on = hover === band || (hover?.from === band.from && hover.to === band.to);
            return (
              <path
                key={`${band.from}/${band.to}`}
                d={ribbon(x0 + NODE, a0, a1, x1 - NODE, b0, b1)}
                fill={on ? "var(--ink)" : "var(--soft)"}
                opacity={on ? 0.55 : 0.24}
                onMouseEnter={() => setHover(band)}
                onMouseLeave={() => setHover(null)}
              >
                <title>{`${band.from} → ${band.to}: ${grouped(band.value)}, ${ratio(band)} per exit of L2`}</title>
              </path>
            );
          })}
          {[...left.values()].map((stop) => (
            <g key={stop.name}>
              <rect x={x0} y={stop.top} width={NODE} height={stop.height} fill="url(#pat-guest_l2)" />
              <text x={x0 - 8} y={stop.top + stop.height / 2 + 4} text-anchor="end">
                {stop.name}{" "}
                <tspan class="faint">
                  {width < 600 ? "" : `${grouped(chains.get(stop.name) ?? 0)} → ${grouped(stop.value)}`}
                </tspan>
              </text>
            </g>
          ))}
          {[...right.values()].map((stop) => (
            <g key={stop.name}>
              <rect x={x1 - NODE} y={stop.top} width={NODE} height={stop.height} fill="url(#pat-guest_l1)" />
              <text x={x1 + 8} y={stop.top + stop.height / 2 + 4}>
                {stop.name}{" "}
                <tspan class="faint">
                  {width < 600 ? "" : `${grouped(stop.value)}, ${percent(stop.value / total)}`}
                </tspan>
              </text>
            </g>
          ))}
        </svg>
      </div>
    </Figure>
  );
}
