/** A histogram of a Section: bars of equal width, each in the shares of its kinds, with the limits across them. */
import { useRef } from "preact/hooks";
import type { HistogramData } from "../data/types";
import { hueOf } from "../draw/tokens";
import { grouped, roundAmount } from "../maths/format";
import { decadesOf, heightOf, placeIn, totalOf } from "../maths/histogram";
import { Axes } from "./Axes";
import { LegendEntry, PICTURE, Picture } from "./Picture";
import { useWidth } from "./useSize";

const HEIGHT = 240;
/** Room for the counts beside the bars, and below them for the ends of bins. */
const LEFT = 90;
const TOP = 22;
const BELOW = 38;

export function Bins({ title, drawn }: { title: string; drawn: HistogramData }) {
  const box = useRef<HTMLDivElement>(null);
  const width = Math.min(PICTURE, useWidth(box));
  const { bins } = drawn;
  const decades = decadesOf(bins);
  const x = (share: number) => LEFT + share * (width - LEFT - 14);
  const y = (count: number) => TOP + (1 - heightOf(count, decades)) * HEIGHT;
  const wide = (width - LEFT - 14) / Math.max(1, bins.length);
  const words = (value: number) => roundAmount(value, drawn.x.unit);
  const ends = [...bins.slice(0, 1).map(({ from }) => from), ...bins.map(({ to }) => to)];
  const counts = Array.from({ length: decades + 1 }, (_, power) => 10 ** power);
  return (
    <div ref={box}>
      <Picture title={title} width={width} height={TOP + HEIGHT + BELOW}>
        <Axes
          left={LEFT}
          bottom={TOP + HEIGHT}
          width={width}
          up={{
            title: `${drawn.counted}, logarithmic`,
            ticks: counts.map((count) => ({ at: y(count), text: grouped(count) })),
          }}
          along={{
            title: drawn.x.title,
            ticks: ends.map((end, i) => ({ at: x(i / bins.length), text: words(end) })),
          }}
        />
        {bins.map((bin, i) => {
          const total = totalOf(bin);
          const high = TOP + HEIGHT - y(total);
          let top = y(total);
          return bin.counts.map((count, kind) => {
            if (count === 0) return null;
            const at = top;
            top += (high * count) / total;
            return (
              <rect
                key={drawn.kinds[kind]!.label}
                x={x(i / bins.length)}
                y={at}
                width={wide}
                height={top - at}
                fill={hueOf(drawn.kinds[kind]!.hue)}
                stroke="var(--page)"
              >
                <title>{`${words(bin.from)} to ${words(bin.to)}: ${grouped(count)} ${drawn.counted}, ${drawn.kinds[kind]!.label}`}</title>
              </rect>
            );
          });
        })}
        <path d={`M${LEFT} ${TOP + HEIGHT}H${width}`} stroke="var(--soft)" />
        {drawn.limits.map((limit) => {
          const share = placeIn(bins, limit.value);
          return (
            <g key={limit.label}>
              <path d={`M${x(share)} ${TOP}V${TOP + HEIGHT}`} stroke="var(--ink)" />
              <text
                x={x(share) + (share > 0.6 ? -5 : 5)}
                y={TOP + 11}
                stroke="var(--page)"
                stroke-width="3"
                paint-order="stroke"
                text-anchor={share > 0.6 ? "end" : "start"}
              >
                {`${limit.label}, ${words(limit.value)}`}
              </text>
            </g>
          );
        })}
      </Picture>
      <ul class="keys">
        {drawn.kinds.map((kind) => (
          <LegendEntry key={kind.label} text={kind.label}>
            <rect width="24" height="12" fill={hueOf(kind.hue)} />
          </LegendEntry>
        ))}
      </ul>
    </div>
  );
}
