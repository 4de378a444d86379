/** The way of packets, hop by hop, in lines as wide as the page; where it crosses a boundary is counted. */
import { useRef } from "preact/hooks";
import type { FlowData, Hop } from "../data/types";
import {
  ABOVE,
  BELOW,
  BOUNDARY,
  END,
  HALF,
  heightOf,
  lineOf,
  placesOf,
  ROW_HEIGHT,
  TILE_HEIGHT,
  TILE_WIDTH,
  thickness,
} from "../draw/flow";
import { bitsPerSecond, counted, packetsPerSecond, percent } from "../maths/format";
import { MARKS } from "./severity";
import { useWidth } from "./useSize";

/** How strong a line is: hue means level and nothing else. */
const STRENGTH = { free: 0.35, near: 0.65, full: 1 };
const BOLD = { "font-weight": 600 };
const SMALL = { class: "faint", "font-size": 10.5 };
const MARK = { free: "", near: `${MARKS.medium} `, full: `${MARKS.high} ` };

export function Flows({ flows }: { flows: FlowData[] }) {
  const first = flows[0];
  return (
    <>
      {flows.map((flow) => (
        <Flow key={flow.title} flow={flow} />
      ))}
      {first && (
        <p class="readout">
          {`Dashed: ${first.boundary}, above it ${first.above}, below it ${first.below}. ${MARK.near}nearly full, ${MARK.full}full.`}
        </p>
      )}
    </>
  );
}

/** One way; its words are texts, which are read in order. */
function Flow({ flow }: { flow: FlowData }) {
  const box = useRef<HTMLDivElement>(null);
  const columns = Math.max(1, Math.min(flow.hops.length, Math.floor(useWidth(box) / TILE_WIDTH)));
  const width = columns * TILE_WIDTH;
  const height = Math.ceil(flow.hops.length / columns) * ROW_HEIGHT;
  let before = 0;
  const tiles = flow.hops.map((hop, i) => {
    const crossed = before;
    before += hop.crossings * hop.count;
    const at = `${(i % columns) * TILE_WIDTH} ${Math.floor(i / columns) * ROW_HEIGHT}`;
    return (
      <g key={`${hop.from.label} ${hop.to.label}`} transform={`translate(${at})`}>
        <Tile flow={flow} hop={hop} isFirst={i === 0} before={crossed} />
      </g>
    );
  });
  const crossings = `${counted(before, "crossing")} of ${flow.boundary}`;
  return (
    <div ref={box} class="flow">
      <p>
        <b>{flow.title}</b> <span class="soft">{crossings}</span>
      </p>
      <svg
        class="picture"
        data-heading={`${flow.title}, ${crossings}`}
        viewBox={`0 0 ${width} ${height}`}
        style={{ maxWidth: `${width}px` }}
      >
        <g text-anchor="middle">{tiles}</g>
      </svg>
    </div>
  );
}

/** One hop; so many crossings were `before` it. */
function Tile({
  flow,
  hop,
  isFirst,
  before,
}: {
  flow: FlowData;
  hop: Hop;
  isFirst: boolean;
  before: number;
}) {
  const { from, to, fullest, fullness } = hop;
  const thick = thickness(hop.bits_per_s, flow.most_bits_per_s);
  const { data, head, crossings } = lineOf(hop, isFirst, thick);
  const places = placesOf(hop);
  const middle = END / 2;
  return (
    <>
      <path d={`M0 ${BOUNDARY}h${TILE_WIDTH}`} stroke="var(--soft)" stroke-dasharray="6 4" />
      {words(TILE_WIDTH - 16, BOUNDARY - 5, flow.boundary, SMALL)}
      <g opacity={STRENGTH[fullness]} stroke="var(--ramp-1)">
        <path d={data} fill="none" stroke-width={thick} />
        <path d={head} fill="var(--ramp-1)" stroke="none" />
      </g>
      {crossings.map((x, i) => {
        // Of folded hops the first crossing and the last one.
        const nth = before + (i + 1 === crossings.length ? hop.crossings * hop.count : 1);
        return (
          <g key={x}>
            <circle cx={x} cy={BOUNDARY} r={nth < 100 ? 8.5 : 12} fill="var(--page)" stroke="var(--soft)" />
            {words(x, BOUNDARY + 4, nth, SMALL)}
          </g>
        );
      })}
      {hop.above && box(hop.above, places.above, ABOVE)}
      {hop.below && box(hop.below, places.below, BELOW)}
      {isFirst && words(13, heightOf(from) + 4, from.label)}
      {to.side === "above"
        ? box(to.label, [END, TILE_WIDTH - 1], ABOVE, to.share)
        : words(END + 26, BELOW + 4, to.label)}
      {words(middle, 14, (hop.count > 1 ? `${hop.count} x ` : "") + hop.path, BOLD)}
      {words(middle, 31, packetsPerSecond(hop.pps))}
      {words(middle, 47, bitsPerSecond(hop.bits_per_s))}
      {fullest &&
        words(
          middle,
          TILE_HEIGHT - 6,
          `${MARK[fullness]}${fullest.resource} ${percent(fullest.share)}`,
          BOLD,
        )}
    </>
  );
}

/** Words of a tile, centred. */
function words(x: number, y: number, text: string | number, look?: Record<string, unknown>) {
  return (
    <text x={x} y={y} {...look}>
      {text}
    </text>
  );
}

/** A box with its name, and how full it is if that is known. */
function box(label: string, [from, to]: [number, number], y: number, share: number | null = null) {
  const middle = (from + to) / 2;
  return (
    <>
      <rect
        x={from}
        y={y - HALF}
        width={to - from}
        height={2 * HALF}
        rx="4"
        fill="var(--panel)"
        stroke="var(--soft)"
      />
      {words(middle, share === null ? y + 4 : y - 2, label)}
      {share !== null && words(middle, y + 12, percent(share), SMALL)}
    </>
  );
}
