/** One gauge of the wall: a number, a bar with the lowest and highest value, and below it all values. */
import { useEffect, useRef, useState } from "preact/hooks";
import { duration, grouped, percent } from "../maths/format";
import { fitColumns, type Series } from "../maths/gauges";
import { figures } from "../maths/rates";
import { hash } from "../state/store";
import { useWidth } from "./useSize";

/** Height of what stands around the gauges of a wall. */
const AROUND = 150;

/** Length of a bar, in units of its picture. */
const LENGTH = 200;

function print(value: number, unit: Series["unit"]): [string, string] {
  if (unit === "share") return [percent(value), ""];
  if (unit === "per second") return [grouped(value), "per second"];
  if (unit === "exits") return [value.toFixed(1), "exits"];
  if (unit === "Mpps" || unit === "Gb/s") return [figures(value), unit];
  const [number = "", words = ""] = duration(Math.round(value)).split(" ");
  return [number, words];
}

/** All of them; on a wall so large that none is below the edge of the screen. */
export function GaugeWall({
  series,
  index,
  stale = false,
}: {
  series: Series[];
  index: number;
  stale?: boolean;
}) {
  const box = useRef<HTMLDivElement>(null);
  const width = useWidth(box);
  const [high, setHigh] = useState(innerHeight);
  useEffect(() => {
    const resized = () => setHigh(innerHeight);
    addEventListener("resize", resized);
    return () => removeEventListener("resize", resized);
  }, []);
  const wall = hash.value.wall === "1";
  const columns = fitColumns(series.length, width, high - AROUND);
  return (
    <div
      class="gauges"
      ref={box}
      style={wall ? { gridTemplateColumns: `repeat(${columns}, minmax(0, 1fr))` } : {}}
    >
      {series.map((it) => (
        <Gauge key={`${it.title} ${it.unit}`} series={it} index={index} stale={stale} />
      ))}
    </div>
  );
}

/** `index`: which of the values is now. An unknown value is a dash, never 0. `stale`: newer ones should be there by now. */
function Gauge({ series, index, stale }: { series: Series; index: number; stale: boolean }) {
  const { title, most, marks } = series;
  const value = series.values[index] ?? null;
  const [figure, unit] = value === null ? ["–", "unknown"] : print(value, series.unit);
  const also = series.also?.[index] ?? "";
  const known = series.values.filter((it) => it !== null);
  const tallest = Math.max(1e-9, ...known);
  const ceiling = marks?.find((mark) => mark.kind === "modelled");
  const published = marks?.filter((mark) => mark.kind === "published") ?? [];
  const end = print(most, series.unit)
    .join(" ")
    .replace(" per second", "/s")
    .replace(" exits", "")
    .replace(".0 %", " %")
    .replace(/\.0+(?= |$)/, "");
  const x = (i: number) => (LENGTH * i) / Math.max(1, series.values.length - 1);
  const line = series.values.map((it, i) => {
    if (it === null) return "";
    const pen = i > 0 && series.values[i - 1] !== null ? "L" : "M";
    return `${pen}${x(i).toFixed(1)} ${(122 - (28 * it) / tallest).toFixed(1)}`;
  });
  return (
    <svg
      class="picture gauge"
      viewBox={`-6 0 ${LENGTH + 12} 126`}
      role="img"
      aria-label={[
        `${title}: ${figure} ${unit}`,
        also,
        stale ? "stale" : "",
        ceiling ? `modelled ceiling ${print(ceiling.value, series.unit).join(" ")}, ${ceiling.label}` : "",
        published.length > 0 ? `${published.length} published` : "",
      ]
        .filter(Boolean)
        .join(", ")}
    >
      <Figures figure={figure} unit={stale ? `${unit}, stale` : unit} beside={also} />
      <Bar
        share={(value ?? 0) / most}
        fill={series.state ? `var(--state-${series.state})` : "var(--soft)"}
        low={known.length > 0 ? Math.min(...known) / most : null}
        high={known.length > 0 ? Math.max(...known) / most : null}
        ceiling={ceiling ? ceiling.value / most : null}
        published={published.map((mark) => mark.value / most)}
      />
      <text y="12" font-size="12.5" font-weight="600">
        {title}
      </text>
      <g class="faint" font-size="9.5">
        <text y="74">0</text>
        {marks && (
          <text x={LENGTH / 2} y="74" text-anchor="middle">
            {ceiling
              ? `ceiling ${figures(ceiling.value)}, ${ceiling.label} (modelled)`
              : "no ceiling is known"}
          </text>
        )}
        <text x={LENGTH} y="74" text-anchor="end">
          {end}
        </text>
      </g>
      <path d={line.join("")} fill="none" stroke="var(--soft)" stroke-width="1.1" />
      <line x1={x(index)} x2={x(index)} y1="90" y2="124" stroke="var(--ink)" stroke-width="1.4" />
    </svg>
  );
}

/** The number of a gauge, its unit, and the same in another unit. */
export function Figures({ figure, unit, beside }: { figure: string; unit: string; beside: string }) {
  return (
    <>
      <text y="42">
        <tspan font-size="27" font-weight="650" letter-spacing="-0.6">
          {figure}
        </tspan>
        <tspan class="faint" dx="4" font-size="12">
          {unit}
        </tspan>
      </text>
      <text class="faint" x={LENGTH} y="42" text-anchor="end" font-size="10.5">
        {beside}
      </text>
    </>
  );
}

/** The bar of a gauge: a fill, thin marks for the lowest and highest value, a thick one for the ceiling, diamonds for what others published. */
export function Bar({
  share,
  fill,
  low = null,
  high = null,
  ceiling,
  published,
}: {
  share: number;
  fill: string;
  low?: number | null;
  high?: number | null;
  ceiling: number | null;
  published: number[];
}) {
  const at = (place: number) => LENGTH * Math.min(1, Math.max(0, place));
  return (
    <>
      <rect y="51" width={LENGTH} height="10" fill="var(--grid)" />
      <rect y="51" width={at(share)} height="10" fill={fill} />
      {[low, high].map(
        (place, i) =>
          place !== null && (
            <path
              key={i === 0 ? "low" : "high"}
              d={`M${at(place)} 49V63`}
              stroke="var(--ink)"
              stroke-width="1.2"
            />
          ),
      )}
      {ceiling !== null && <path d={`M${at(ceiling)} 47V65`} stroke="var(--ink)" stroke-width="3.5" />}
      {published
        .filter((place) => place <= 1)
        .map((place) => (
          <path
            key={place}
            d={`M${at(place) - 5} 56l5-6l5 6l-5 6z`}
            fill="var(--page)"
            stroke="var(--ink)"
            stroke-width="1.2"
          />
        ))}
    </>
  );
}
