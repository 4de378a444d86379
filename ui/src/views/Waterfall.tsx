/** Steps that use up a whole: each begins where the one above ends; what would come back is its lighter end. */
import { useRef } from "preact/hooks";
import type { Step, Whole } from "../data/types";
import { wrapped } from "../draw/frame";
import { hueOf } from "../draw/tokens";
import { squeezed, wideOf } from "../draw/words";
import { percent } from "../maths/format";
import { go } from "../state/store";
import { LegendEntry, PICTURE, Picture } from "./Picture";
import { useWidth } from "./useSize";

const ROW = 24;
const HEAD = 24;
/** Where bars begin, and how long the whole is, in a picture of full width; a narrow one has less of both. */
const AT = 270;
const LONG = 330;
const LEAST_AT = 190;
/** A line of a note, and a letter of it. */
const LINE = 16;
const LETTER = 6.6;
const GAP = 8;
/** Drawn open; the others wait behind a line that says how many they are. */
const OPEN = 1;

export function Waterfalls({ wholes }: { wholes: Whole[] }) {
  const more = wholes.slice(OPEN);
  return (
    <>
      {wholes.slice(0, OPEN).map((whole) => (
        <One key={whole.title} whole={whole} />
      ))}
      <ul class="keys">
        <LegendEntry text="stays">
          <rect width="24" height="12" fill="var(--soft)" />
        </LegendEntry>
        <LegendEntry text="would come back">
          <Back x={0.5} y={0.5} width={23} height={11} />
        </LegendEntry>
      </ul>
      {more.length > 0 && (
        <details>
          <summary>{more.length} more like this, of a VM or a vCPU each</summary>
          {more.map((whole) => (
            <One key={whole.title} whole={whole} />
          ))}
        </details>
      )}
    </>
  );
}

function One({ whole: { title, steps } }: { whole: Whole }) {
  const box = useRef<HTMLDivElement>(null);
  const width = Math.min(PICTURE, useWidth(box));
  const at = Math.min(AT, Math.max(LEAST_AT, width * 0.31));
  const long = Math.min(LONG, width - at - GAP);
  let along = 0;
  let y = HEAD;
  const rows = steps.map((step) => {
    const row = { step, begins: along, y, note: noteOf(step, at + (along + step.share) * long, at, width) };
    along += step.share;
    y += ROW + row.note.below.length * LINE;
    return row;
  });
  return (
    <div ref={box}>
      <Picture title={title} width={width} height={y + 6}>
        <text y="15" font-weight="600">
          {title}
        </text>
        {rows.map((row, i) => (
          <Row key={row.step.label} {...row} at={at} long={long} last={i + 1 === rows.length} />
        ))}
      </Picture>
    </div>
  );
}

interface Note {
  /** Behind the bar, where there is room; else in lines below it. */
  behind: string;
  below: string[];
}

function noteOf({ note }: Step, end: number, at: number, width: number): Note {
  if (!note) return { behind: "", below: [] };
  if (Math.max(end, at) + GAP + wideOf(note) <= width) return { behind: note, below: [] };
  return { behind: "", below: wrapped(note, Math.floor((width - at) / LETTER)) };
}

function Row({
  step,
  begins,
  y,
  at,
  long,
  note,
  last,
}: {
  step: Step;
  begins: number;
  y: number;
  at: number;
  long: number;
  note: Note;
  last: boolean;
}) {
  const x = at + begins * long;
  const wide = Math.max(1.5, step.share * long);
  const back = Math.min(wide, step.given_back * long);
  const finding = step.removed[0]?.finding;
  const look = {
    class: finding ? "faint linked" : "faint",
    onClick: () => finding && go({ view: "findings", finding }, true),
  };
  const share = percent(step.share);
  return (
    <g transform={`translate(0 ${y})`}>
      <text y="14">
        <title>{step.label}</title>
        {squeezed(step.label, at - 24 - wideOf(share))}
      </text>
      <text x={at - 12} y="14" text-anchor="end">
        {share}
      </text>
      <rect
        x={x}
        y="3"
        width={wide}
        height={ROW - 8}
        fill={hueOf(step.hue)}
        stroke="var(--soft)"
        stroke-width="0.5"
      />
      {back > 0 && <Back x={x + wide - back} y={3} width={back} height={ROW - 8} />}
      {!last && <path d={`M${x + wide} ${ROW - 5}v${8 + note.below.length * LINE}`} stroke="var(--soft)" />}
      {note.behind && (
        <text {...look} x={Math.max(x + wide, at) + GAP} y="14">
          {note.behind}
        </text>
      )}
      {note.below.length > 0 && (
        <g class="on-lines">
          <text {...look}>
            {note.below.map((line, i) => (
              <tspan key={line} x={at} y={ROW + 8 + i * LINE}>
                {i > 0 ? ` ${line}` : line}
              </tspan>
            ))}
          </text>
        </g>
      )}
    </g>
  );
}

function Back(place: { x: number; y: number; width: number; height: number }) {
  return (
    <rect
      {...place}
      fill="var(--page)"
      fill-opacity="0.62"
      stroke="var(--ink)"
      stroke-dasharray="3 2"
      stroke-width="1"
    />
  );
}
