/** The whole recording as a strip above every view: what is chosen on it, all views that know time show. */
import { useEffect, useRef, useState } from "preact/hooks";
import { meanOf } from "../data/lanes";
import type { Recording } from "../data/source";

import { mainLanes, vcpuLanes } from "../data/types";
import { type Coverage, coverageOf, paintCoverage } from "../draw/lane";
import { PATTERN_SIZE, texture } from "../draw/patterns";
import { stackOrder } from "../draw/tokens";
import { duration, instant } from "../maths/format";
import type { Window } from "../maths/window";
import { show, shown, theme, whole, zoomed } from "../state/store";
import { Swatch } from "./Figure";
import { useAnswer } from "./useAnswer";
import { shareAlong, useBrush } from "./useBrush";

const PIXELS = 1024;
const HEIGHT = 26;

/** A state that takes less of the strip is nowhere seen on it. */
const LEAST_SHARE = 0.005;

export function Overview({ recording, fixed }: { recording: Recording; fixed: boolean }) {
  const [drawn, setDrawn] = useState<number[]>([]);
  return (
    <section class="overview" aria-label="Window of time">
      {whole.value.t1 - whole.value.t0 > 1 && <Strip recording={recording} onDrawn={setDrawn} />}
      <div class="span-row">
        <p class="span-line">
          {zoomed.value ? (
            <>
              <span class="span-chip">
                <span>
                  showing <b>{spanOf(shown.value)}</b>, {duration(shown.value.t1 - shown.value.t0)} of{" "}
                  {duration(whole.value.t1 - whole.value.t0)}
                </span>
                <button type="button" onClick={() => show(whole.value)} title="Show the whole recording (0)">
                  clear
                </button>
              </span>
              {fixed && <span>The findings are of the whole recording.</span>}
            </>
          ) : (
            <WholeSpan ns={whole.value.t1 - whole.value.t0} />
          )}
        </p>
        {fixed && drawn.length > 0 && (
          <ul class="legend" aria-label="Colours of the strip">
            {drawn.map((at) => (
              <li key={at}>
                <Swatch state={recording.timeline!.states[at]!.name} />{" "}
                {recording.timeline!.states[at]!.title}
              </li>
            ))}
          </ul>
        )}
      </div>
    </section>
  );
}

/** How long the recording is; one event has no length, and nothing to narrow. */
function WholeSpan({ ns }: { ns: number }) {
  if (ns <= 1) return <span>A single instant.</span>;
  return (
    <span>
      All of {duration(ns)}. <span class="hint">Drag over the strip to narrow all views.</span>
    </span>
  );
}

/** `0.121 s to 0.182 s`, with enough digits to distinguish its ends. */
function spanOf({ t0, t1 }: Window): string {
  const step = (t1 - t0) / 10;
  return `${instant(t0, step)} to ${instant(t1, step)}`;
}

/** Which share of the strip a state takes. */
function shareOf({ share }: Coverage, state: number, states: number): number {
  let sum = 0;
  for (let at = state; at < share.length; at += states) sum += share[at]!;
  return sum / PIXELS;
}

function Strip({ recording, onDrawn }: { recording: Recording; onDrawn: (states: number[]) => void }) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const { t0, t1 } = whole.value;
  const lanes = mainLanes(recording.timeline);
  const of = vcpuLanes(recording.timeline).length > 0 ? "vCPUs" : "CPUs";
  const { value: tile } = useAnswer(
    () => recording.tile(t0, t1, PIXELS, { lanes: [], means: lanes.length > 0 ? [lanes] : [] }),
    [recording],
  );
  useEffect(() => {
    const context = canvas.current?.getContext("2d");
    if (!context || !tile || !recording.timeline) return;
    const names = recording.timeline.states.map((state) => state.name);
    const image = context.createImageData(PIXELS, HEIGHT);
    const coverage = coverageOf([tile], meanOf(lanes), t0, t1, PIXELS);
    const order = stackOrder(names);
    onDrawn(order.filter((state) => shareOf(coverage, state, names.length) >= LEAST_SHARE));
    paintCoverage(new Uint32Array(image.data.buffer), PIXELS, 0, HEIGHT, coverage, order, {
      size: PATTERN_SIZE,
      of: names.map((name) => texture(name, theme.value, 1)),
    });
    context.putImageData(image, 0, 0);
  }, [tile, theme.value, t0, t1]);
  const at = (part: number) => t0 + part * (t1 - t0);
  const { drag, handlers } = useBrush({
    span: ({ from, to }) => show({ t0: at(from), t1: at(to) }),
    click: (event) => {
      if (!zoomed.value) return;
      const half = (shown.value.t1 - shown.value.t0) / 2;
      const to = at(shareAlong(event));
      show({ t0: to - half, t1: to + half });
    },
  });
  const left = drag?.from ?? (shown.value.t0 - t0) / (t1 - t0);
  const right = drag?.to ?? (shown.value.t1 - t0) / (t1 - t0);
  return (
    <div class="strip">
      <canvas
        ref={canvas}
        width={PIXELS}
        height={HEIGHT}
        role="img"
        aria-label={`The whole recording, ${duration(t1 - t0)}, all ${of} together. W and S zoom, A and D move, 0 shows all.`}
        {...handlers}
      />
      <i class="shade" style={{ left: 0, width: `${100 * left}%` }} />
      <i class="shade" style={{ right: 0, width: `${100 * (1 - right)}%` }} />
      {(drag || zoomed.value) && (
        <i class="window" style={{ left: `${100 * left}%`, width: `${100 * Math.max(0, right - left)}%` }} />
      )}
    </div>
  );
}
