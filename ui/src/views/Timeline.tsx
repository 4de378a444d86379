/** View 'Timeline': where was each vCPU, at this zoom, exactly? */
import { signal } from "@preact/signals";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import type { Recording } from "../data/source";
import type { Tile } from "../data/tile";
import { TileCache } from "../data/tiles";
import type { Slice, Slices } from "../data/types";
import { coverageOf, slicesIn } from "../draw/lane";
import { stackOrder } from "../draw/tokens";
import { counted, duration, instant, percent } from "../maths/format";
import { csv } from "../maths/rows";
import { pan, type Window, zoom } from "../maths/window";
import { numberOf } from "../state/hash";
import { cursor, go, hash, show, shown, theme, whole, zoomed } from "../state/store";
import { Empty, Figure, Swatch } from "./Figure";
import { attach } from "./timeline/gestures";
import { drawScene, layout, timeToX } from "./timeline/picture";
import { useWidth } from "./useSize";

const SETTLE_MS = 120;
const STAIR_SLICES = 1000;
const STAIR_PIXELS = 3;

/** Frame times of the drawing, for the end-to-end test. */
export const frames: number[] = [];
const brush = signal<Window | null>(null);

export function TimelineView({ recording }: { recording: Recording }) {
  if (!recording.timeline) {
    return (
      <Empty title="No vCPU to draw">
        The recording holds no KVM events with a thread behind them. <code>kvmscope record</code> on the host
        brings kvm_entry and kvm_exit; a trace made elsewhere needs both events.
      </Empty>
    );
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
  const [hover, setHover] = useState<{ lane: number; y: number } | null>(null);
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
  const place = layout(
    timeline,
    lanes.map((lane) => lane.id),
    stairs,
    innerHeight - 330,
  );
  const scale = Math.max(1, Math.min(3, Math.round(devicePixelRatio)));
  const tiles = cache.window(window.t0, window.t1, (window.t1 - window.t0) / (width * scale));
  const exact = useExact(
    recording,
    lanes.map((lane) => lane.id),
    window,
  );

  useEffect(() => {
    const timer = setTimeout(() => {
      const few = lanes.filter((lane) => mayBeStairs(tiles, lane.id, window, width));
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
  }, [recording, window.t0, window.t1, width, onlyLane, turn]);

  useEffect(() => {
    const handle = requestAnimationFrame(() => {
      if (!canvas.current) return;
      const start = performance.now();
      const scene = {
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
      drawScene(canvas.current, width, scene);
      frames.push(performance.now() - start);
      if (frames.length > 600) frames.shift();
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
        const lane = ns === null ? undefined : wishes.current.laneAt(y);
        setHover(lane === undefined ? null : { lane, y });
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
  const hovered = hover && cursor.value !== null ? sliceAt(stairs.get(hover.lane), cursor.value) : null;
  const sums =
    exact ??
    approximate(
      tiles,
      lanes.map((lane) => lane.id),
      window,
      timeline.states.length,
    );
  const total = sums.reduce((a, b) => a + b, 0);
  const used = order.filter((s) => (sums[s] ?? 0) > 0);
  return (
    <Figure
      id="timeline"
      title="Where was each vCPU?"
      csv={() =>
        csv(
          ["state", "time_ns"],
          used.map((s) => [timeline.states[s]!.name, Math.round(sums[s]!)]),
        )
      }
      caption={caption(
        timeline.states.map((s) => s.title),
        sums,
        total,
        window,
        lanes.length,
        exact !== null,
      )}
      tools={<Zoom />}
    >
      {error && <p class="error">{error}</p>}
      <div class="lanes">
        <ul class="lane-names" style={{ height: `${place.height}px` }}>
          {place.lanes.map((lane) => {
            const it = timeline.lanes.find((known) => known.id === lane.id)!;
            return (
              <li key={lane.id} style={{ top: `${lane.top}px`, height: `${lane.height}px` }}>
                <strong>{it.title}</strong>
                <span title={it.group}>{it.group}</span>
                <span>{counted(it.chains, "chain")}</span>
              </li>
            );
          })}
        </ul>
        <div class="lane-canvas" ref={box}>
          <canvas
            ref={canvas}
            style={{ height: `${place.height}px` }}
            tabIndex={0}
            role="img"
            aria-label={`Timeline of ${counted(lanes.length, "vCPU")}, ${duration(window.t1 - window.t0)} shown. Keys W and S zoom, A and D move, F shows all.`}
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
          {hovered && hover && (
            <Tip
              slice={hovered}
              title={timeline.states[hovered.state]?.title ?? "unknown"}
              x={timeToX(cursor.value!, window, width)}
              y={hover.y}
              wide={width}
            />
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
      </ul>
      <p class="readout" aria-hidden="true">
        {cursor.value !== null
          ? `at ${instant(Math.round(cursor.value))} since the first event`
          : "Drag to move, wheel to zoom, shift-drag to choose a span, click a chain to open it."}
      </p>
    </Figure>
  );
}

function Zoom() {
  return (
    <>
      <button type="button" onClick={() => show(pan(shown.value, -0.5, whole.value))} aria-label="Earlier">
        ←
      </button>
      <button
        type="button"
        onClick={() => show(zoom(shown.value, (shown.value.t0 + shown.value.t1) / 2, 0.5, whole.value))}
        aria-label="Zoom in"
      >
        +
      </button>
      <button
        type="button"
        onClick={() => show(zoom(shown.value, (shown.value.t0 + shown.value.t1) / 2, 2, whole.value))}
        aria-label="Zoom out"
      >
        −
      </button>
      <button type="button" onClick={() => show(pan(shown.value, 0.5, whole.value))} aria-label="Later">
        →
      </button>
      <button type="button" disabled={!zoomed.value} onClick={() => show(whole.value)}>
        All
      </button>
    </>
  );
}

function Tip({
  slice,
  title,
  x,
  y,
  wide,
}: {
  slice: Slice;
  title: string;
  x: number;
  y: number;
  wide: number;
}) {
  const side = x > wide / 2 ? { right: `${wide - x + 12}px` } : { left: `${x + 12}px` };
  return (
    <div class="tip" style={{ top: `${y + 14}px`, ...side }}>
      <strong>{title}</strong> {slice.detail}
      <br />
      {duration(slice.to_ns - slice.from_ns)} from {instant(slice.from_ns)}
    </div>
  );
}

function sliceAt(slices: Slices | undefined, ns: number): Slice | null {
  return slices?.slices.find((slice) => ns >= slice.from_ns && ns < slice.to_ns) ?? null;
}

/** Slices are worth asking for once they are several pixels wide. */
function mayBeStairs(tiles: Tile[], lane: number, window: Window, width: number): boolean {
  if (tiles.length === 0) return false;
  return slicesIn(tiles, lane, window.t0, window.t1) * STAIR_PIXELS < width;
}

/** The exact sums of the window over all lanes, 150 ms after it came to rest. */
function useExact(recording: Recording, lanes: number[], window: Window): number[] | null {
  const [sums, setSums] = useState<number[] | null>(null);
  useEffect(() => {
    setSums(null);
    let current = true;
    const timer = setTimeout(() => {
      Promise.all(
        lanes.map((lane) => recording.states(lane, Math.floor(window.t0), Math.ceil(window.t1))),
      ).then(
        (all) => {
          if (!current || all.some((one) => one === null)) return;
          setSums(all.reduce<number[]>((sum, one) => one!.map((ns, s) => ns + (sum[s] ?? 0)), []));
        },
        () => undefined,
      );
    }, SETTLE_MS);
    return () => {
      current = false;
      clearTimeout(timer);
    };
  }, [recording, window.t0, window.t1, lanes.join()]);
  return sums;
}

function approximate(tiles: Tile[], lanes: number[], window: Window, states: number): number[] {
  const sums = Array<number>(states).fill(0);
  if (tiles.length === 0) return sums;
  for (const lane of lanes) {
    const { share } = coverageOf(tiles, lane, window.t0, window.t1, 256);
    for (let i = 0; i < share.length; i++)
      sums[i % states] = sums[i % states]! + (share[i]! * (window.t1 - window.t0)) / 256;
  }
  return sums;
}

function caption(
  titles: string[],
  sums: number[],
  total: number,
  window: Window,
  lanes: number,
  exact: boolean,
): string {
  const most = sums
    .map((ns, s) => ({ ns, s }))
    .filter(({ ns }) => ns > 0)
    .sort((a, b) => b.ns - a.ns)
    .slice(0, 3);
  const span = `${duration(window.t1 - window.t0)} from ${instant(window.t0, (window.t1 - window.t0) / 100)}`;
  if (most.length === 0) return `${span}: nothing was recorded here.`;
  const parts = most.map(({ ns, s }) => `${percent(ns / total)} ${titles[s]}`);
  return `${span}, ${counted(lanes, "vCPU")}: ${exact ? "" : "about "}${parts.join(", ")}. Heights are shares of time, the same at every zoom.`;
}
