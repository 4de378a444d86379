/** Steps that use up a whole: each begins where the one above ends; what would come back is its lighter end. */
import type { Step, Whole } from "../data/types";
import { hueOf } from "../draw/tokens";
import { percent } from "../maths/format";
import { go } from "../state/store";
import { LegendEntry, PICTURE, Picture } from "./Picture";

const ROW = 24;
const HEAD = 24;
const AT = 270;
const LONG = 330;
/** Drawn open; the others wait behind a line that says how many they are. */
const OPEN = 1;

export function Waterfalls({ wholes }: { wholes: Whole[] }) {
  const more = wholes.slice(OPEN);
  return (
    <>
      {wholes.slice(0, OPEN).map((whole) => (
        <One key={whole.title} whole={whole} />
      ))}
      <ul class="legend">
        <LegendEntry text="stays">
          <rect width="24" height="12" fill="var(--soft)" />
        </LegendEntry>
        <LegendEntry text="would come back, at most">
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
  let along = 0;
  return (
    <Picture title={title} width={PICTURE} height={HEAD + steps.length * ROW + 6}>
      <text y="15" font-weight="600">
        {title}
      </text>
      {steps.map((step, i) => {
        const begins = along;
        along += step.share;
        return (
          <Row
            key={step.label}
            step={step}
            begins={begins}
            y={HEAD + i * ROW}
            last={i + 1 === steps.length}
          />
        );
      })}
    </Picture>
  );
}

function Row({ step, begins, y, last }: { step: Step; begins: number; y: number; last: boolean }) {
  const x = AT + begins * LONG;
  const wide = Math.max(1.5, step.share * LONG);
  const back = Math.min(wide, step.given_back * LONG);
  const finding = step.removed[0]?.finding;
  return (
    <g transform={`translate(0 ${y})`}>
      <text y="14">{step.label}</text>
      <text x={AT - 12} y="14" text-anchor="end">
        {percent(step.share)}
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
      {!last && <path d={`M${x + wide} ${ROW - 5}v8`} stroke="var(--soft)" />}
      {step.note && (
        <text
          class={finding ? "faint linked" : "faint"}
          x={Math.max(x + wide, AT) + 8}
          y="14"
          onClick={() => finding && go({ view: "findings", finding }, true)}
        >
          {step.note}
        </text>
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
