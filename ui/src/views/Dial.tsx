/** One gauge of the wall: a needle over 270 degrees, the lowest and highest value, and below it all values. */
import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { duration, grouped, percent } from "../maths/format";
import { arc, DECADES, fitColumns, onDial, onLog, type Series } from "../maths/gauges";
import { figures } from "../maths/rates";
import { hash } from "../state/store";
import { useWidth } from "./useSize";

/** Height of what stands around the dials of a wall. */
const AROUND = 150;

function print(value: number, unit: Series["unit"]): [string, string] {
  if (unit === "share") return [percent(value), ""];
  if (unit === "per second") return [grouped(value), "per second"];
  if (unit === "exits") return [value.toFixed(1), "exits"];
  if (unit === "Mpps" || unit === "Gb/s") return [figures(value), unit];
  const [number = "", words = ""] = duration(Math.round(value)).split(" ");
  return [number, words];
}

/** All of them; on a wall so large that none is below the edge of the screen. */
export function Dials({
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
      class="dials"
      ref={box}
      style={wall ? { gridTemplateColumns: `repeat(${columns}, minmax(0, 1fr))` } : {}}
    >
      {series.map((it) => (
        <Dial key={`${it.title} ${it.unit}`} series={it} index={index} stale={stale} />
      ))}
    </div>
  );
}

/** `index`: which of the values is now. An unknown value is a dash, never 0. `stale`: newer ones should be there by now. */
function Dial({ series, index, stale }: { series: Series; index: number; stale: boolean }) {
  const value = series.values[index] ?? null;
  const share = (value ?? 0) / series.most;
  const [figure, unit] = value === null ? ["–", "unknown"] : print(value, series.unit);
  const known = series.values.filter((it) => it !== null);
  const low = Math.min(...known) / series.most;
  const high = Math.max(...known) / series.most;
  const tallest = Math.max(1e-9, ...known);
  const fill = series.state ? `var(--state-${series.state})` : "var(--ink)";
  const ceiling = series.marks?.find((mark) => mark.kind === "modelled");
  const published = series.marks?.filter((mark) => mark.kind === "published") ?? [];
  // Room for the line that names the ceiling.
  const down = series.marks ? 15 : 0;
  const x = (i: number) => -84 + (168 * i) / Math.max(1, series.values.length - 1);
  const line = series.values.map((it, i) => {
    if (it === null) return "";
    const pen = i > 0 && series.values[i - 1] !== null ? "L" : "M";
    return `${pen}${x(i).toFixed(1)} ${(128 + down - (30 * it) / tallest).toFixed(1)}`;
  });
  return (
    <svg
      class="picture dial"
      viewBox={`-100 -92 200 ${232 + down}`}
      role="img"
      aria-label={[
        `${series.title}: ${figure} ${unit}`,
        series.also?.[index] ?? "",
        stale ? "stale" : "",
        ceiling ? `modelled ceiling ${print(ceiling.value, series.unit).join(" ")}, ${ceiling.label}` : "",
        published.length > 0 ? `${published.length} published` : "",
      ]
        .filter(Boolean)
        .join(", ")}
    >
      <Face
        share={value === null ? null : share}
        fill={fill}
        figure={figure}
        unit={stale ? `${unit}, stale` : unit}
        stale={stale}
        short={series.marks !== undefined}
        end={print(series.most, series.unit)
          .join(" ")
          .replace(" per second", "/s")
          .replace(" exits", "")
          .replace(".0 %", " %")
          .replace(/\.0+(?= |$)/, "")}
        marks={known.length > 0 ? [low, high] : []}
      >
        {ceiling && <Ceiling share={ceiling.value / series.most} />}
        {series.marks && <Log series={series} value={value ?? 0} />}
        {series.also && (
          <text class="faint" y="42" font-size="10.5">
            {series.also[index] ?? ""}
          </text>
        )}
      </Face>
      <text y="88" text-anchor="middle" font-size="12.5" font-weight="600">
        {series.title}
      </text>
      {series.marks && (
        <text class="faint" y="102" text-anchor="middle" font-size="9.5">
          {ceiling ? `ceiling ${figures(ceiling.value)}, ${ceiling.label} (modelled)` : "no ceiling is known"}
        </text>
      )}
      <path d={line.join("")} fill="none" stroke="var(--soft)" stroke-width="1.1" />
      <line
        x1={x(index)}
        x2={x(index)}
        y1={96 + down}
        y2={130 + down}
        stroke="var(--ink)"
        stroke-width="1.4"
      />
    </svg>
  );
}

/** The modelled ceiling: a bar across the dial. */
function Ceiling({ share }: { share: number }) {
  return <path d={across(share, 65, 91)} stroke="var(--ink)" stroke-width="4.5" />;
}

/** The second scale, inside the first: logarithmic, with a tick for each decade, the value as an arc and published rates as diamonds. */
function Log({ series, value }: { series: Series; value: number }) {
  const most = series.logMost ?? series.most;
  const share = onLog(value, most);
  return (
    <>
      <path d={arc(0, 1, 59)} fill="none" stroke="var(--grid)" stroke-width="5" />
      {share > 0 && <path d={arc(0, share, 59)} fill="none" stroke="var(--soft)" stroke-width="5" />}
      {Array.from({ length: DECADES + 1 }, (_, decade) => {
        return <path key={decade} d={across(decade / DECADES, 55, 63)} stroke="var(--soft)" />;
      })}
      {(series.marks ?? []).map((mark) => {
        const { x, y } = onDial(onLog(mark.value, most), 59);
        if (mark.kind === "modelled") {
          const place = onLog(mark.value, most);
          return <path key="ceiling" d={across(place, 54, 64)} stroke="var(--ink)" stroke-width="3" />;
        }
        return (
          <path
            key={mark.label + mark.value}
            d={`M${x - 5} ${y}l5 -6l5 6l-5 6z`}
            fill="var(--page)"
            stroke="var(--ink)"
            stroke-width="1.2"
          >
            <title>{`published: ${print(mark.value, series.unit).join(" ")}, ${mark.label}`}</title>
          </path>
        );
      })}
      <text class="faint" y="57" text-anchor="middle" font-size="8.5">
        {`inside: log to ${most}`}
      </text>
    </>
  );
}

/**
 * The dial itself: how far round it the hand is, if anybody knows, and which places are marked. What stands on it too is drawn below the
 * hand, which is `short` where there is a scale inside.
 */
export function Face({
  share,
  fill,
  figure,
  unit,
  end,
  marks,
  stale = false,
  short = false,
  children,
}: {
  share: number | null;
  fill: string;
  figure: string;
  unit: string;
  end: string;
  marks: number[];
  stale?: boolean;
  short?: boolean;
  children?: ComponentChildren;
}) {
  return (
    <g text-anchor="middle">
      <path d={arc(0, 1, 74)} fill="none" stroke="var(--grid)" stroke-width="13" />
      {share !== null && share > 0.002 && (
        <path d={arc(0, Math.min(1, share), 74)} fill="none" stroke={fill} stroke-width="13" />
      )}
      {marks.map((mark, i) => (
        <path
          key={i === 0 ? "low" : "high"}
          d={across(mark, 64, 85)}
          stroke="var(--soft)"
          stroke-width="1.2"
        />
      ))}
      {children}
      {share !== null && (
        <path
          d={across(share, short ? 65 : 59, 82)}
          stroke={stale ? "var(--soft)" : "var(--ink)"}
          stroke-width="2.6"
          stroke-dasharray={stale ? "3 3" : undefined}
          stroke-linecap={stale ? "butt" : "round"}
        />
      )}
      <text y="8" font-size="27" font-weight="650" letter-spacing="-0.6">
        {figure}
      </text>
      <text class="faint" y="28" font-size="12">
        {unit}
      </text>
      {["0", end].map((words, i) => (
        <text key={words} x={onDial(i, 74).x} y="70" font-size="9.5" class="faint">
          {words}
        </text>
      ))}
    </g>
  );
}

/** A line across the dial. */
function across(share: number, from: number, to: number): string {
  const [a, b] = [onDial(share, from), onDial(share, to)];
  return `M${a.x} ${a.y}L${b.x} ${b.y}`;
}
