/** Both timelines one above the other on one scale: time since the first event of each, or since the window's beginning. */
import { useEffect, useMemo, useRef } from "preact/hooks";
import { vcpuLanes } from "../../data/types";
import { standalone } from "../../draw/export";
import { coverageOf, paintCoverage } from "../../draw/lane";
import { PATTERN_SIZE, texture } from "../../draw/patterns";
import { lookOf, stackOrder } from "../../draw/tokens";
import { duration, percent } from "../../maths/format";
import { csv } from "../../maths/rows";
import type { Window } from "../../maths/window";
import { theme } from "../../state/store";
import { Empty, Figure, Swatch } from "../Figure";
import { useAnswer } from "../useAnswer";
import { usePrinted } from "../usePrinted";
import { useWindow } from "../useReport";
import { useWidth } from "../useSize";
import { lengthOf, type Sides } from "./Names";
import { GAP, HEIGHT, marksOf, PIXELS, type Side, sideOf, stripsOf } from "./strips";
import { vectorOfBoth } from "./vector";

/** Of a saved picture, whatever the screen. */
const SAVED = 1000;
const WORDS = ["Before", "After"];

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
      svg={() => {
        const named = sides.map((side, i) => ({
          word: WORDS[i]!,
          name: side.recording.id,
          strips: stripsOf(side, window),
        }));
        const drawn = vectorOfBoth(named, window, SAVED);
        return standalone(drawn.inside, drawn.width, drawn.height);
      }}
      csv={() =>
        csv(
          ["state", "before", "after"],
          names.map((name) => [name, share(first, name), share(second, name)]),
        )
      }
      caption={`${most && far(most) > 0 ? `The largest difference is ${title(most)}: ${percent(share(first, most))} of the vCPUs' time before, ${percent(share(second, most))} after. ` : ""}${narrow ? `Both from ${duration(window.t0)} to ${duration(window.t1)} after their first events` : "Both begin with their first event"}, on one scale: what is as wide lasted as long. The recordings were not made at the same time, so places below each other are not the same instant.`}
    >
      {sides.map((side, i) => (
        <Strips key={i} side={side} window={window} word={WORDS[i]!} />
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
  const { recording } = side;
  const { timeline, rows, tile, height, ends } = useMemo(
    () => stripsOf(side, window),
    [side, window.t0, window.t1],
  );
  const draw = () => {
    const context = canvas.current?.getContext("2d");
    if (!context || !canvas.current) return;
    canvas.current.width = width;
    canvas.current.height = height;
    if (!tile) return;
    const names = timeline.states.map(({ name }) => name);
    const textures = { size: PATTERN_SIZE, of: names.map((name) => texture(name, theme.value, 1)) };
    const image = context.createImageData(width, height);
    const pixels = new Uint32Array(image.data.buffer);
    for (const [i, { lane }] of rows.entries()) {
      const coverage = coverageOf([tile], lane, tile.t0, tile.t1, width);
      paintCoverage(pixels, width, i * (HEIGHT + GAP), HEIGHT, coverage, stackOrder(names), textures);
    }
    context.putImageData(image, 0, 0);
    canvas.current.dataset.drawn = word;
  };
  useEffect(draw, [tile, theme.value, height, width]);
  usePrinted(draw);
  return (
    <div class="both-side">
      <h3>
        {word} <span class="soft">{recording.id}</span>
      </h3>
      <div class="both-lanes">
        <ul>
          {rows.map(({ lane, title, group }) => (
            <li key={lane} title={group && `${group}, ${title}`}>
              {title} <small>{group}</small>
            </li>
          ))}
        </ul>
        <div ref={box}>
          <canvas
            ref={canvas}
            style={{ height: `${height}px` }}
            role="img"
            aria-label={`${word}: ${recording.id}, ${duration(lengthOf(recording))}, share of each state over time`}
          />
        </div>
      </div>
      {ends && <p class="soft">{ends}</p>}
    </div>
  );
}

function Scale({ window }: { window: Window }) {
  const box = useRef<HTMLDivElement>(null);
  const width = useWidth(box);
  return (
    <div class="both-scale" ref={box}>
      {marksOf(window, width).map(({ at, words, isLast }) => (
        <span key={at} class={isLast ? "before" : ""} style={{ left: `${100 * at}%` }}>
          {words}
        </span>
      ))}
    </div>
  );
}
