/** Single numbers on a logarithmic scale: ours as dots in their interval, those that others published as diamonds. */
import type { Point, PointGroup } from "../data/types";
import { amount } from "../maths/format";
import { logScale } from "../maths/logarithm";

const WIDTH = 860;
const ROW = 22;
const SCALE_AT = 330;
const SCALE = 240;

export function Points({ group }: { group: PointGroup }) {
  const place = logScale(
    group.points.flatMap((point) => [point.low ?? point.value, point.value, point.high ?? point.value]),
  );
  const x = (value: number) => SCALE_AT + place(value) * SCALE;
  return (
    <svg
      class="picture"
      viewBox={`0 0 ${WIDTH} ${group.points.length * ROW + 30}`}
      style={{ maxWidth: `${WIDTH}px` }}
      role="img"
      aria-label={group.title}
    >
      <text x="0" y="15" font-weight="600">
        {`${group.title}, ${group.unit === "ns" ? "time" : group.unit}, logarithmic scale`}
      </text>
      {group.points.map((point, i) => (
        <g key={`${point.label}${point.source}`} transform={`translate(0 ${24 + i * ROW})`}>
          <text x="0" y="14">
            {point.label}
          </text>
          <text x="240" y="14" text-anchor="end">
            {amount(point.value, group.unit)}
          </text>
          <text class="faint" x="250" y="14">
            {point.mark}
          </text>
          <line x1={SCALE_AT} x2={SCALE_AT + SCALE} y1="10" y2="10" stroke="var(--soft)" stroke-width="0.5" />
          {point.low !== null && point.high !== null && (
            <line x1={x(point.low)} x2={x(point.high)} y1="10" y2="10" stroke="var(--ink)" stroke-width="3" />
          )}
          <Shape point={point} at={x(point.value)} />
          <text class="faint" x={SCALE_AT + SCALE + 14} y="14" font-size="11">
            {point.source}
          </text>
        </g>
      ))}
    </svg>
  );
}

function Shape({ point, at }: { point: Point; at: number }) {
  if (point.mark === "published")
    return <path d={`M${at - 5} 10L${at} 5L${at + 5} 10L${at} 15Z`} fill="var(--soft)" />;
  const measured = point.mark === "measured";
  return (
    <circle
      cx={at}
      cy="10"
      r="4.5"
      fill={measured ? "var(--ink)" : "none"}
      stroke="var(--ink)"
      stroke-width="2"
    />
  );
}
