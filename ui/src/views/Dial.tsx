/** One gauge of the wall: a needle over 270 degrees, the lowest and highest value, and below it all values. */
import { useEffect, useRef, useState } from "preact/hooks";
import { duration, grouped, percent } from "../maths/format";
import { arc, fitColumns, onDial, type Series } from "../maths/gauges";
import { hash } from "../state/store";
import { useWidth } from "./useSize";

/** Height of what stands around the dials of a wall. */
const AROUND = 150;

function print(value: number, unit: Series["unit"]): [string, string] {
  if (unit === "share") return [percent(value), ""];
  if (unit === "per second") return [grouped(value), "per second"];
  if (unit === "exits") return [value.toFixed(1), "exits"];
  const [number = "", words = ""] = duration(Math.round(value)).split(" ");
  return [number, words];
}

/** All of them; on a wall so large that none is below the edge of the screen. */
export function Dials({ series, index }: { series: Series[]; index: number }) {
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
        <Dial key={it.title} series={it} index={index} />
      ))}
    </div>
  );
}

/** `index`: which of the values is now. An unknown value is a dash, never 0. */
function Dial({ series, index }: { series: Series; index: number }) {
  const value = series.values[index] ?? null;
  const share = (value ?? 0) / series.most;
  const [figure, unit] = value === null ? ["–", "unknown"] : print(value, series.unit);
  const known = series.values.filter((it) => it !== null);
  const low = Math.min(...known) / series.most;
  const high = Math.max(...known) / series.most;
  const tallest = Math.max(1e-9, ...known);
  const fill = series.state ? `var(--state-${series.state})` : "var(--ink)";
  const tip = onDial(share, 66);
  const x = (i: number) => -84 + (168 * i) / Math.max(1, series.values.length - 1);
  const line = series.values.map((it, i) => {
    if (it === null) return "";
    const pen = i > 0 && series.values[i - 1] !== null ? "L" : "M";
    return `${pen}${x(i).toFixed(1)} ${(128 - (30 * it) / tallest).toFixed(1)}`;
  });
  return (
    <svg
      class="picture dial"
      viewBox="-100 -92 200 232"
      role="img"
      aria-label={`${series.title}: ${figure} ${unit}`}
    >
      <path d={arc(0, 1, 74)} fill="none" stroke="var(--grid)" stroke-width="13" />
      {share > 0.002 && (
        <path d={arc(0, Math.min(1, share), 74)} fill="none" stroke={fill} stroke-width="13" />
      )}
      {(known.length > 0 ? [low, high] : []).map((mark, i) => {
        const a = onDial(mark, 64);
        const b = onDial(mark, 85);
        return (
          <line
            key={i === 0 ? "low" : "high"}
            x1={a.x}
            y1={a.y}
            x2={b.x}
            y2={b.y}
            stroke="var(--soft)"
            stroke-width="1.2"
          />
        );
      })}
      {value !== null && (
        <line
          x1={tip.x * 0.9}
          y1={tip.y * 0.9}
          x2={tip.x * 1.24}
          y2={tip.y * 1.24}
          stroke="var(--ink)"
          stroke-width="2.6"
          stroke-linecap="round"
        />
      )}
      <text y="8" text-anchor="middle" font-size="27" font-weight="650" letter-spacing="-0.6">
        {figure}
      </text>
      <text class="faint" y="28" text-anchor="middle" font-size="12">
        {unit}
      </text>
      <text x={onDial(0, 74).x} y="70" text-anchor="middle" font-size="9.5" class="faint">
        0
      </text>
      <text x={onDial(1, 74).x} y="70" text-anchor="middle" font-size="9.5" class="faint">
        {print(series.most, series.unit)
          .join(" ")
          .replace(" per second", "/s")
          .replace(" exits", "")
          .replace(".0 %", " %")
          .replace(/\.0+(?= |$)/, "")}
      </text>
      <text y="88" text-anchor="middle" font-size="12.5" font-weight="600">
        {series.title}
      </text>
      <path d={line.join("")} fill="none" stroke="var(--soft)" stroke-width="1.1" />
      <line x1={x(index)} x2={x(index)} y1="96" y2="130" stroke="var(--ink)" stroke-width="1.4" />
    </svg>
  );
}
