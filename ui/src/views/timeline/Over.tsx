/** What lies above the lanes: cursor, area, marks and the words at the pointer. A move of the hand draws this alone. */
import { useSignal } from "@preact/signals";
import { useEffect, useLayoutEffect, useRef } from "preact/hooks";
import { meanOf } from "../../data/lanes";
import type { Recording } from "../../data/source";
import type { Slice } from "../../data/types";
import { duration, percent, placed } from "../../maths/format";
import { type Area, areaOf, pickOf } from "../../maths/picked";
import { numberOf } from "../../state/hash";
import { chooseArea, pick } from "../../state/picked";
import { cursor, endGesture, go, hash, selected, show, shown, theme, whole } from "../../state/store";
import { usePrinted } from "../usePrinted";
import { chainAt, sliceAt, targetAt } from "./found";
import { attach, type Place } from "./gestures";
import { AXIS_HEIGHT } from "./layout";
import { type Above, drawAbove, marksNear, pixelAt, type Scene, timeToX } from "./picture";
import { Tip } from "./Tools";

const SHARES = 7;

interface Props {
  recording: Recording;
  scene: Scene;
  width: number;
  label: string;
  /** Whether a slice has details; where it has none, its chain is opened. */
  hasDetails: boolean;
}

export function Over({ recording, scene, width, label, hasDetails }: Props) {
  const canvas = useRef<HTMLCanvasElement>(null);
  /** Where the pointer is: how far along, from 0 to 1, and in CSS pixels below the canvas's upper edge. */
  const hover = useSignal<{ along: number; y: number } | null>(null);
  const brush = useSignal<Area | null>(null);
  const now = useRef(scene);
  now.current = scene;
  const open = async (lane: number, ns: number, byPointer = false) => {
    if (hasDetails) return pick({ lane, ns }, byPointer);
    const chain = await chainAt(recording, lane, Math.floor(ns));
    if (chain) go({ view: "chains", chain: chain.id }, true);
  };
  const picked = pickOf(hash.value);
  const { t0, t1 } = scene.window;
  const above: Above = {
    cursor: cursor.value,
    brush: brush.value,
    area: areaOf(hash.value),
    picked: picked && selected.value ? { lane: picked.lane, window: selected.value } : null,
    mark: numberOf(hash.value, "mark"),
  };
  useLayoutEffect(() => {
    // Keys and the wheel move what is below a pointer that rests.
    if (hover.peek()) cursor.value = t0 + hover.peek()!.along * (t1 - t0);
  }, [t0, t1]);
  const last = useRef(above);
  last.current = above;
  const draw = () => {
    if (canvas.current)
      drawAbove(canvas.current, width, { ...now.current, theme: theme.value }, last.current);
  };
  useEffect(() => {
    const handle = requestAnimationFrame(draw);
    return () => cancelAnimationFrame(handle);
  });
  usePrinted(() => {
    // A canvas of another size begins empty and needs no erasing, which would be printed as well.
    if (canvas.current) canvas.current.width = 0;
    draw();
  });
  useEffect(() => {
    if (!canvas.current) return;
    return attach(canvas.current, {
      window: () => shown.value,
      whole: () => whole.value,
      show,
      end: endGesture,
      brush: (ends) => {
        brush.value = ends && areaBetween(now.current, ends);
      },
      chosen: (ends) => chooseArea(areaBetween(now.current, ends)),
      hover: (place) => {
        const { t0, t1 } = shown.value;
        cursor.value = place?.ns ?? null;
        hover.value = place && { along: (place.ns - t0) / (t1 - t0), y: place.y };
      },
      pick: ({ ns, y }) => {
        const lane = laneAt(now.current, y);
        if (lane !== null && lane.row === "lane") void open(lane.id, ns, true);
      },
      focus: async ({ ns, y }) => {
        const lane = laneAt(now.current, y);
        if (lane === null || lane.row !== "lane") return;
        endGesture();
        const target = await targetAt(recording, lane.id, ns, shown.value);
        if (target) show(target);
      },
    });
  }, [recording]);
  const keys = (event: KeyboardEvent) => {
    const first = scene.layout.lanes.find((lane) => lane.top >= scene.top) ?? scene.layout.lanes[0];
    if (event.key !== "Enter" || !first) return;
    void open(picked?.lane ?? first.id, picked?.ns ?? cursor.value ?? (t0 + t1) / 2);
  };
  const at = cursor.value;
  const tip = at !== null && hover.value ? wordsAt(scene, { ns: at, y: hover.value.y }, width) : [];
  return (
    <>
      <canvas
        class="above"
        ref={canvas}
        tabIndex={0}
        role="img"
        aria-label={label}
        style={{ height: `${scene.height}px` }}
        onKeyDown={keys}
      />
      {at !== null && tip.length > 0 && (
        <Tip
          lines={tip}
          x={timeToX(at, scene.window, width)}
          y={hover.value?.y ?? 0}
          wide={width}
          high={scene.height}
        />
      )}
    </>
  );
}

/** The time under the pointer, in a line of its own below the lanes. */
export function Readout() {
  const at = cursor.value;
  return (
    <p class="readout" aria-hidden="true">
      {at !== null
        ? `${placed(Math.round(at), shown.value.t1 - shown.value.t0)} after the first event`
        : "\u00a0"}
    </p>
  );
}

function laneAt(scene: Scene, y: number): { id: number; row: "lane" | "group"; title: string } | null {
  // Lanes go on below the axis.
  if (y < AXIS_HEIGHT) return null;
  const high = y + scene.top;
  const inside = (it: { top: number; height: number }) => high >= it.top && high < it.top + it.height;
  const lane = scene.layout.lanes.find(inside);
  if (lane) {
    const it = scene.timeline.lanes.find((known) => known.id === lane.id)!;
    return { id: lane.id, row: "lane", title: `${it.group} ${it.title}` };
  }
  const group = scene.layout.groups.find((group) => group.mean && inside(group));
  return group ? { id: meanOf(group.lanes), row: "group", title: `${group.title}, mean` } : null;
}

function areaBetween(scene: Scene, [a, b]: [Place, Place]): Area {
  const [t0, t1] = a.ns < b.ns ? [a.ns, b.ns] : [b.ns, a.ns];
  const [top, bottom] = [Math.min(a.y, b.y) + scene.top, Math.max(a.y, b.y) + scene.top];
  const { lanes } = scene.layout;
  const touched = lanes.filter((lane) => lane.top <= bottom && lane.top + lane.height >= top);
  // A stroke between two lanes means the next one below.
  const some = touched.length > 0 ? touched : lanes.filter((lane) => lane.top > bottom).slice(0, 1);
  const { t0: from, t1: to } = whole.value;
  return { window: { t0: Math.max(from, t0), t1: Math.min(to, t1) }, lanes: some.map(({ id }) => id) };
}

/** What lies under the pointer: marks, a slice where it is drawn, else the shares of the column. */
function wordsAt(scene: Scene, { ns, y }: Place, width: number): string[] {
  const { states, markers } = scene.timeline;
  const marks = marksNear(markers, ns, scene.window, width);
  const row = laneAt(scene, y);
  if (!row) return marks;
  const length = scene.window.t1 - scene.window.t0;
  const slices = scene.layout.lanes.find(({ id }) => id === row.id)?.steps && scene.stairs.get(row.id);
  const slice: Slice | null = slices ? sliceAt(slices, ns) : null;
  if (slice)
    return [
      `${states[slice.state]!.title} ${slice.detail}`,
      `${duration(slice.to_ns - slice.from_ns)} from ${placed(slice.from_ns, length)}`,
      ...marks,
    ];
  const pixel = pixelAt(scene.tiles, row.id, ns);
  if (!pixel || pixel.shares.length === 0) return marks;
  const { t0, t1, shares } = pixel;
  return [
    `${row.title}, ${duration(t1 - t0)} from ${placed(t0, length)}`,
    ...shares
      .slice(0, SHARES)
      .map(({ state, share }) => `${share > 0 ? percent(share) : "<0.2 %"} ${states[state]!.title}`),
    ...(shares.length > SHARES ? [`and ${shares.length - SHARES} more`] : []),
    ...marks,
  ];
}
