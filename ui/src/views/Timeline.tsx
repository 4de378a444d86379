/** View 'Timeline': where was each vCPU, at this zoom, exactly? */
import { signal } from "@preact/signals";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import type { Recording } from "../data/source";
import type { Tile } from "../data/tile";
import { TileCache } from "../data/tiles";
import { type Slice, type Slices, vcpuLanes } from "../data/types";
import { standalone } from "../draw/export";
import { slicesIn } from "../draw/lane";
import { stackOrder } from "../draw/tokens";
import { counted, duration, instant, percent } from "../maths/format";
import { csv } from "../maths/rows";
import type { Window } from "../maths/window";
import { numberOf } from "../state/hash";
import { cursor, go, hash, show, shown, theme, whole } from "../state/store";
import { Empty, Figure, Swatch } from "./Figure";
import { attach } from "./timeline/gestures";
import { layout } from "./timeline/layout";
import { drawScene, marksNear, type Scene, timeToX } from "./timeline/picture";
import { approximate, caption, SETTLE_MS, useExact } from "./timeline/sums";
import { Names, Perfetto, Tip, turnedGroups, Zoom } from "./timeline/Tools";
import { vectorScene } from "./timeline/vector";
import { useWidth } from "./useSize";

const DRAWING = "timeline";
const STAIR_SLICES = 1000;
const STAIR_PIXELS = 3;

const brush = signal<Window | null>(null);

export function TimelineView({ recording }: { recording: Recording }) {
  if (!recording.timeline) {
    return (
      <Empty title="No vCPU to draw">
        The recording contains no KVM events with a thread. Run <code>kvmscope record</code> on the host; a
        trace of another recorder needs the events kvm_entry and kvm_exit.
      </Empty>
    );
  }
  if (recording.timeline.span.to_ns <= recording.timeline.span.from_ns) {
    return <Empty title="No time to draw">All events have the same time stamp; no state lasts.</Empty>;
  }
  return <Lanes recording={recording} timeline={recording.timeline} />;
}

function Lanes({
  recording,
  timeline,
}: {
  recording: Recording;
  timeline: NonNullable<Recording["timeline"]>;
}) {
  const box = useRef<HTMLDivElement>(null);
  const canvas = useRef<HTMLCanvasElement>(null);
  const width = useWidth(box);
  const [turn, setTurn] = useState(0);
  const [error, setError] = useState<string | null>(null);
  const [stairs, setStairs] = useState(new Map<number, Slices>());
  const [hover, setHover] = useState<{ lane?: number; y: number } | null>(null);
  const cache = useMemo(
    () =>
      new TileCache(recording, (failed) => {
        setError(failed?.message ?? null);
        setTurn((turn) => turn + 1);
      }),
    [recording],
  );
  const window = shown.value;
  const onlyLane = hash.value.lane;
  const lanes = timeline.lanes.filter((lane) => onlyLane === undefined || String(lane.id) === onlyLane);
  const place = layout(timeline, lanes, stairs, turnedGroups(), innerHeight - 400);
  const open = place.lanes.map((lane) => lane.id);
  // Lanes of different kinds show the same time again: shares are those of vCPUs, where any is open.
  const vcpus = vcpuLanes(timeline).filter((id) => open.includes(id));
  const counts = vcpus.length > 0 ? vcpus : open.length > 0 ? open : vcpuLanes(timeline);
  const scale = Math.max(1, Math.min(3, Math.round(devicePixelRatio)));
  const tiles = cache.window(window.t0, window.t1, (window.t1 - window.t0) / (width * scale));
  const exact = useExact(recording, counts, window);

  useEffect(() => {
    const timer = setTimeout(() => {
      const few = place.lanes.filter((lane) => mayBeStairs(tiles, lane.id, window, width));
      Promise.all(
        few.map(
          async (lane) =>
            [lane.id, await recording.slices(lane.id, window.t0, window.t1, STAIR_SLICES)] as const,
        ),
      ).then(
        (all) =>
          setStairs(
            new Map(all.filter((it): it is [number, Slices] => it[1] !== null && it[1].left_out === 0)),
          ),
        (failed: Error) => setError(failed.message),
      );
    }, SETTLE_MS);
    return () => clearTimeout(timer);
  }, [recording, window.t0, window.t1, width, open.join(), turn]);

  const scene: Scene = {
    timeline,
    window,
    tiles,
    stairs,
    layout: place,
    theme: theme.value,
    cursor: cursor.value,
    brush: brush.value,
    mark: numberOf(hash.value, "mark"),
  };
  useEffect(() => {
    const handle = requestAnimationFrame(() => {
      if (!canvas.current) return;
      const start = performance.now();
      drawScene(canvas.current, width, scene);
      // The end-to-end test reads these; a browser keeps no endless list of them for us.
      performance.clearMeasures(DRAWING);
      performance.measure(DRAWING, { start });
      canvas.current.dataset.drawn = String(tiles.length);
    });
    return () => cancelAnimationFrame(handle);
  });

  const laneAt = (y: number) => place.lanes.find((lane) => y >= lane.top && y < lane.top + lane.height)?.id;
  const wishes = useRef({ laneAt });
  wishes.current = { laneAt };
  useEffect(() => {
    if (!canvas.current) return;
    return attach(canvas.current, {
      window: () => shown.value,
      whole: () => whole.value,
      show,
      brush: (window) => {
        brush.value = window;
      },
      hover: (ns, y) => {
        cursor.value = ns;
        setHover(ns === null ? null : { lane: wishes.current.laneAt(y), y });
      },
      pick: async (ns, y) => {
        const lane = wishes.current.laneAt(y);
        if (lane === undefined) return;
        const found = await recording.chains({ lane, t0: Math.floor(ns), t1: Math.floor(ns) + 1, limit: 1 });
        const chain = found.chains[0];
        if (chain) go({ view: "chains", chain: chain.id }, true);
      },
    });
  }, [recording]);

  const order = stackOrder(timeline.states.map((state) => state.name));
  const states = timeline.states;
  const at = cursor.value!;
  const hovered = hover && sliceAt(stairs.get(hover.lane!), at);
  const tip = hovered
    ? [
        `${states[hovered.state]!.title} ${hovered.detail}`,
        `${duration(hovered.to_ns - hovered.from_ns)} from ${instant(hovered.from_ns)}`,
      ]
    : marksNear(timeline.markers, at, window, width);
  const sums = exact ?? approximate(tiles, counts, window, states.length);
  const total = sums.reduce((a, b) => a + b, 0);
  const used = order.filter((s) => (sums[s] ?? 0) > 0);
  const aside = order.filter((s) => !used.includes(s) && isPresent(tiles, s));
  return (
    <Figure
      id="timeline"
      title="Where was each vCPU?"
      note={
        vcpuLanes(timeline).length === 0
          ? "Only CPUs and threads are known here, no vCPUs: the recording contains no kvm_entry and kvm_exit with a thread."
          : ""
      }
      svg={() => {
        const drawn = vectorScene(scene, width);
        return standalone(drawn.inside, drawn.width, drawn.height);
      }}
      csv={() =>
        csv(
          ["state", "time_ns"],
          used.map((s) => [timeline.states[s]!.name, Math.round(sums[s]!)]),
        )
      }
      caption={caption(
        states.map((state) => state.title),
        sums,
        total,
        window,
        counted(counts.length, vcpus.length > 0 || open.length === 0 ? "vCPU" : "lane"),
        exact !== null,
        { covers: place.lanes.some((lane) => !lane.steps), stairs: place.lanes.some((lane) => lane.steps) },
      )}
      tools={
        <>
          <Zoom />
          <Perfetto recording={recording} />
        </>
      }
    >
      {error && <p class="error">{error}</p>}
      <div class="lanes">
        <Names timeline={timeline} place={place} />
        <div class="lane-canvas" ref={box}>
          <canvas
            ref={canvas}
            style={{ height: `${place.height}px` }}
            tabIndex={0}
            role="img"
            aria-label={`Timeline of ${counted(lanes.length, "lane")}, ${duration(window.t1 - window.t0)} shown. W and S zoom, A and D move, F shows all.`}
          />
          {place.lanes.map((lane) =>
            lane.steps?.map((step, i) => (
              <span
                class="step"
                key={`${lane.id}${step}`}
                style={{ top: `${lane.top + (i * lane.height) / lane.steps!.length}px` }}
              >
                {step}
              </span>
            )),
          )}
          {hover && tip.length > 0 && (
            <Tip lines={tip} x={timeToX(at, window, width)} y={hover.y} wide={width} />
          )}
        </div>
      </div>
      <ul class="legend">
        {used.map((s) => (
          <li key={s}>
            <Swatch state={timeline.states[s]!.name} /> {timeline.states[s]!.title}{" "}
            <b>{percent(sums[s]! / total)}</b>
          </li>
        ))}
        {aside.map((s) => (
          <li key={s}>
            <Swatch state={timeline.states[s]!.name} /> {timeline.states[s]!.title}
          </li>
        ))}
      </ul>
      {timeline.notes && timeline.notes.length > 0 && (
        <details class="soft">
          <summary>What is missing or inexact ({timeline.notes.length})</summary>
          <ul>
            {timeline.notes.map((it) => (
              <li key={it}>{it}</li>
            ))}
          </ul>
        </details>
      )}
      <p class="readout" aria-hidden="true">
        {cursor.value !== null
          ? `${instant(Math.round(cursor.value))} after the first event`
          : "Drag to move, wheel to zoom, shift-drag to choose a window, click a chain to open it."}
      </p>
    </Figure>
  );
}

function sliceAt(slices: Slices | undefined, ns: number): Slice | null {
  return slices?.slices.find((slice) => ns >= slice.from_ns && ns < slice.to_ns) ?? null;
}

/** Whether any lane has the state here. */
function isPresent(tiles: Tile[], state: number): boolean {
  return tiles.at(-1)?.lanes.some((lane) => lane.present.some((bits) => (bits >>> state) & 1)) ?? false;
}

/** Slices are worth asking for once they are several pixels wide. */
function mayBeStairs(tiles: Tile[], lane: number, window: Window, width: number): boolean {
  if (tiles.length === 0) return false;
  return slicesIn(tiles, lane, window.t0, window.t1) * STAIR_PIXELS < width;
}
