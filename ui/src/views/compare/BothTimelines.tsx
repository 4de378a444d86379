/** Both timelines one above the other on one scale: time since the first event of each, or since the window's beginning. */
import { useEffect, useRef } from "preact/hooks";
import type { Recording } from "../../data/source";
import { meanLane, type Tile } from "../../data/tile";
import { vcpuLanes } from "../../data/types";
import { coverageOf, paintCoverage } from "../../draw/lane";
import { PATTERN_SIZE, texture } from "../../draw/patterns";
import { lookOf, stackOrder } from "../../draw/tokens";
import { duration, percent, roundDuration } from "../../maths/format";
import { csv } from "../../maths/rows";
import { scaleOf } from "../../maths/scale";
import type { Window } from "../../maths/window";
import { theme } from "../../state/store";
import { Empty, Figure, Swatch } from "../Figure";
import { useAnswer } from "../useAnswer";
import { useWindow } from "../useReport";
import { useWidth } from "../useSize";
import { lengthOf, type Sides } from "./Names";

const HEIGHT = 44;
const GAP = 6;
/** Of a tile; the screen shows so many or fewer. */
const PIXELS = 2048;
/** A side with more vCPUs is drawn as the mean of all. */
const LANES = 8;

interface Side {
  recording: Recording;
  tile: Tile | null;
  /** Share of the vCPUs' time by the state's name. */
  shares: Map<string, number>;
}

async function sideOf(recording: Recording, { t0, t1 }: Window): Promise<Side> {
  const { timeline } = recording;
  const lanes = vcpuLanes(timeline);
  const end = Math.min(t1, lengthOf(recording));
  if (!timeline || lanes.length === 0 || end <= t0) return { recording, tile: null, shares: new Map() };
  const from = timeline.span.from_ns;
  const [tile, sums] = await Promise.all([
    recording.tile(from + t0, from + t1, PIXELS, { lanes, means: [] }),
    recording.states(lanes, Math.floor(from + t0), Math.ceil(from + end)),
  ]);
  const each = [...(sums?.values() ?? [])];
  const all = timeline.states.map((_, s) => each.reduce((sum, of) => sum + (of[s] ?? 0), 0));
  const whole = Math.max(
    1,
    all.reduce((a, b) => a + b, 0),
  );
  return { recording, tile, shares: new Map(timeline.states.map(({ name }, s) => [name, all[s]! / whole])) };
}

export function BothTimelines({ before, after }: Sides) {
  const narrow = useWindow();
  const window = narrow ?? { t0: 0, t1: Math.max(1, lengthOf(before), lengthOf(after)) };
  const { value: sides, error } = useAnswer(
    () => Promise.all([before, after].map((recording) => sideOf(recording, window))),
    [before, after, window.t0, window.t1],
  );
  const lacking = [before, after].find(({ timeline }) => vcpuLanes(timeline).length === 0);
  if (lacking) {
    return (
      <Empty title="The timelines cannot be compared">
        {lacking.id} contains no vCPU to draw: a trace needs the events kvm_entry and kvm_exit.
      </Empty>
    );
  }
  if (error) return <Empty title="The timelines cannot be read">{error}</Empty>;
  if (!sides) {
    return (
      <p class="loading" role="status">
        Reading both timelines …
      </p>
    );
  }
  const [first, second] = sides;
  const names = [...new Set([...(first?.shares.keys() ?? []), ...(second?.shares.keys() ?? [])])]
    .filter((name) => first!.shares.get(name) || second!.shares.get(name))
    .sort((a, b) => lookOf(a).rank - lookOf(b).rank);
  const title = (name: string) =>
    [before, after].flatMap(({ timeline }) => timeline!.states).find((state) => state.name === name)?.title ??
    name;
  const share = (side: Side | undefined, name: string) => side?.shares.get(name) ?? 0;
  const far = (name: string) => Math.abs(share(second, name) - share(first, name));
  // That less is unknown is no change of what happened.
  const most = names.filter((name) => name !== "unknown").sort((a, b) => far(b) - far(a))[0];
  return (
    <Figure
      id="both-timelines"
      title="Where was each vCPU, before and after?"
      picture={false}
      csv={() =>
        csv(
          ["state", "before", "after"],
          names.map((name) => [name, share(first, name), share(second, name)]),
        )
      }
      caption={`${most && far(most) > 0 ? `The largest difference is ${title(most)}: ${percent(share(first, most))} of the vCPUs' time before, ${percent(share(second, most))} after. ` : ""}${narrow ? `Both from ${duration(window.t0)} to ${duration(window.t1)} after their first events` : "Both begin with their first event"}, on one scale: what is as wide lasted as long. The recordings were not made at the same time, so places below each other are not the same instant.`}
    >
      {sides.map((side, i) => (
        <Strips key={i} side={side} window={window} word={i === 0 ? "Before" : "After"} />
      ))}
      <Scale window={window} />
      <ul class="legend both">
        {names.map((name) => (
          <li key={name}>
            <Swatch state={name} /> {title(name)}{" "}
            <b>
              {percent(share(first, name))} → {percent(share(second, name))}
            </b>
          </li>
        ))}
      </ul>
    </Figure>
  );
}

function Strips({ side, window, word }: { side: Side; window: Window; word: string }) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const box = useRef<HTMLDivElement>(null);
  const width = Math.min(PIXELS, useWidth(box));
  const { recording, tile } = side;
  const timeline = recording.timeline!;
  const ids = vcpuLanes(timeline);
  const isMean = ids.length > LANES;
  const rows = isMean ? 1 : ids.length;
  const height = rows * (HEIGHT + GAP) - GAP;
  useEffect(() => {
    const context = canvas.current?.getContext("2d");
    if (!context || !canvas.current) return;
    canvas.current.width = width;
    canvas.current.height = height;
    context.clearRect(0, 0, width, height);
    if (!tile) return;
    const names = timeline.states.map(({ name }) => name);
    const textures = { size: PATTERN_SIZE, of: names.map((name) => texture(name, theme.value, 1)) };
    const image = context.createImageData(width, height);
    const pixels = new Uint32Array(image.data.buffer);
    const drawn = isMean ? meanLane(tile, ids) : tile;
    for (const [i, lane] of (isMean ? [0] : ids).entries()) {
      const coverage = coverageOf([drawn], lane, drawn.t0, drawn.t1, width);
      paintCoverage(pixels, width, i * (HEIGHT + GAP), HEIGHT, coverage, stackOrder(names), textures);
    }
    context.putImageData(image, 0, 0);
    canvas.current.dataset.drawn = word;
  }, [tile, theme.value, height, width]);
  const lanes = timeline.lanes.filter(({ id }) => ids.includes(id));
  const end = lengthOf(recording);
  return (
    <div class="both-side">
      <h3>
        {word} <span class="soft">{recording.id}</span>
      </h3>
      <div class="both-lanes">
        <ul>
          {isMean ? (
            <li>mean of {ids.length} vCPUs</li>
          ) : (
            lanes.map((lane) => (
              <li key={lane.id} title={`${lane.group}, ${lane.title}`}>
                {lane.title} <small>{lane.group}</small>
              </li>
            ))
          )}
        </ul>
        <div ref={box}>
          <canvas
            ref={canvas}
            style={{ height: `${height}px` }}
            role="img"
            aria-label={`${word}: ${recording.id}, ${duration(end)}, share of each state over time`}
          />
        </div>
      </div>
      {end < window.t1 && (
        <p class="soft">
          {end <= window.t0
            ? `${recording.id} ends before this window, after ${duration(end)}.`
            : `${recording.id} ends after ${duration(end)}.`}
        </p>
      )}
    </div>
  );
}

function Scale({ window: { t0, t1 } }: { window: Window }) {
  const box = useRef<HTMLDivElement>(null);
  const width = useWidth(box);
  const { marks } = scaleOf({ title: "", unit: "ns", logarithmic: false }, [t1 - t0]);
  const shown = marks.filter((mark) => mark <= t1 - t0);
  const every = Math.ceil((100 * shown.length) / width);
  return (
    <div class="both-scale" ref={box}>
      {shown.map((mark, i) =>
        i % every === 0 ? (
          <span
            key={mark}
            // The last one has no room behind its mark.
            class={mark > 0.88 * (t1 - t0) ? "before" : ""}
            style={{ left: `${(100 * mark) / (t1 - t0)}%` }}
          >
            {t0 > 0 ? "+" : ""}
            {roundDuration(mark)}
          </span>
        ) : null,
      )}
    </div>
  );
}
