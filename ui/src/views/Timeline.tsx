/** View 'Timeline': where was each vCPU, at this zoom, exactly? */
import type { FunctionComponent } from "preact";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { meanOf, type Wanted } from "../data/lanes";
import type { Recording } from "../data/source";
import type { Tile } from "../data/tile";
import { TileCache } from "../data/tiles";
import { mainLanes, vcpuLanes } from "../data/types";
import { standalone } from "../draw/export";
import { stackOrder } from "../draw/tokens";
import { counted, duration, percent } from "../maths/format";
import { csv } from "../maths/rows";
import { numberOf } from "../state/hash";
import { go, hash, shown, theme } from "../state/store";
import { Empty, Figure, Swatch } from "./Figure";
import type { useArrows } from "./timeline/arrows";
import { Details } from "./timeline/Details";
import { LaneTools } from "./timeline/LaneTools";
import { AXIS_HEIGHT, between, type Layout, layout } from "./timeline/layout";
import type { OfReasons } from "./timeline/OfReasons";
import type { OfSlice } from "./timeline/OfSlice";
import { Over, Readout } from "./timeline/Over";
import { useOrder } from "./timeline/order";
import { axisOf, drawScene, type Scene } from "./timeline/picture";
import { useRoom } from "./timeline/room";
import { STAIR_PIXELS, useStairs } from "./timeline/stairs";
import { approximate, caption, useExact } from "./timeline/sums";
import { Names, turnedGroups, Zoom } from "./timeline/Tools";
import { vectorScene } from "./timeline/vector";
import { useInView } from "./timeline/view";
import { usePrinted } from "./usePrinted";
import { useWidth } from "./useSize";

const DRAWING = "timeline";
/** More lanes than this are added up by the server alone, once the window is at rest. */
const FEW_LANES = 16;

/** What only a server has. */
export interface OfServer {
  Arrows: FunctionComponent;
  Perfetto: FunctionComponent<{ recording: Recording }>;
  OfReasons: typeof OfReasons;
  OfSlice: typeof OfSlice;
  useArrows: typeof useArrows;
}

const noArrows: typeof useArrows = () => null;

export function TimelineView({ recording, ofServer }: { recording: Recording; ofServer?: OfServer }) {
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
  return <Lanes recording={recording} timeline={recording.timeline} ofServer={ofServer} />;
}

function Lanes({
  recording,
  timeline,
  ofServer,
}: {
  recording: Recording;
  timeline: NonNullable<Recording["timeline"]>;
  ofServer: OfServer | undefined;
}) {
  const box = useRef<HTMLDivElement>(null);
  const column = useRef<HTMLDivElement>(null);
  const canvas = useRef<HTMLCanvasElement>(null);
  const width = useWidth(column);
  const [scrolled, setScrolled] = useState(0);
  const [, setTurn] = useState(0);
  const [error, setError] = useState<string | null>(null);
  const cache = useMemo(
    () =>
      new TileCache(recording, (failed) => {
        setError(failed?.message ?? null);
        setTurn((turn) => turn + 1);
      }),
    [recording],
  );
  const window = shown.value;
  const length = window.t1 - window.t0;
  const onlyLane = hash.value.lane;
  const lanes = timeline.lanes.filter((lane) => onlyLane === undefined || String(lane.id) === onlyLane);
  const order = useOrder(recording, timeline);
  const most = useRoom(box);
  const stairsOf = useRef<Scene["stairs"]>(new Map());
  const part = length / (timeline.span.to_ns - timeline.span.from_ns);
  const room = {
    height: most,
    fewInMean: (lane: { slices: number }) => lane.slices * part * STAIR_PIXELS < width,
  };
  const place = layout(timeline, lanes, stairsOf.current, turnedGroups(), room, order);
  const height = Math.round(Math.min(place.height, most));
  const top = Math.min(scrolled, place.height - height);
  const seen = between(place, top + AXIS_HEIGHT, top + height);
  const open = place.lanes.map((lane) => lane.id);
  const isNone = place.groups.length + open.length === 0;
  // Lanes of different kinds show the same time again: shares are those of vCPUs, where any is open.
  const hasVcpus = vcpuLanes(timeline).length > 0;
  const vcpus = vcpuLanes(timeline).filter((id) => open.includes(id));
  const cpus = timeline.lanes
    .filter(({ id, kind }) => kind === "cpu" && open.includes(id))
    .map(({ id }) => id);
  const counts =
    vcpus.length > 0
      ? vcpus
      : cpus.length > 0
        ? cpus
        : open.length > 0 || isNone
          ? open
          : mainLanes(timeline);
  const scale = Math.max(1, Math.min(3, Math.round(devicePixelRatio)));
  // Nobody else adds up the lanes of a report file that are not on screen.
  const sum = !isNone && (recording.inlined || counts.length <= FEW_LANES) ? [counts] : [];
  const tiles = cache.window(
    window.t0,
    window.t1,
    length / (width * scale),
    wantedOf(between(place, top - height / 4, top + 1.25 * height), sum),
    wantedOf(between(place, top - height, top + 2 * height), sum),
  );
  const exact = useExact(recording, counts, window);
  const near = between(place, top - height / 2, top + 1.5 * height);
  const stairs = useStairs(recording, tiles, near.lanes, window, width, setError);
  useEffect(() => {
    if (stairsOf.current === stairs) return;
    stairsOf.current = stairs;
    setTurn((turn) => turn + 1);
  }, [stairs]);
  const arrows = (ofServer?.useArrows ?? noArrows)(recording, hash.value.arrows === "1", stairs, window);

  const scene: Scene = {
    timeline,
    window,
    tiles,
    stairs: stairsOf.current,
    layout: seen,
    theme: theme.value,
    top,
    height,
    arrows,
  };
  const draw = () => {
    if (!canvas.current) return;
    const start = performance.now();
    drawScene(canvas.current, width, { ...scene, theme: theme.value });
    // The end-to-end test reads these; a browser keeps no endless list of them for us.
    performance.clearMeasures(DRAWING);
    performance.measure(DRAWING, { start });
    canvas.current.dataset.drawn = String(tiles.length);
  };
  useEffect(() => {
    const handle = requestAnimationFrame(draw);
    return () => cancelAnimationFrame(handle);
  });
  usePrinted(draw);

  useInView(box, place, height);

  const states = timeline.states;
  const ranks = stackOrder(states.map((state) => state.name));
  const mean = sum.length > 0 ? approximate(tiles, counts, window, states.length) : null;
  const lastSums = useRef<number[]>([]);
  const sums = exact ?? mean ?? lastSums.current;
  lastSums.current = sums;
  const isKnown = exact !== null || mean !== null;
  const total = sums.reduce((a, b) => a + b, 0);
  const used = isNone ? [] : ranks.filter((s) => (sums[s] ?? 0) > 0);
  const aside = isNone ? [] : ranks.filter((s) => !used.includes(s) && isPresent(tiles, s));
  const axis = axisOf(window, width).labels;
  const none = order.filter ? `No lane matches "${order.filter}".` : "This recording has no such lane.";
  return (
    <Figure
      id="timeline"
      title={hasVcpus ? "Where was each vCPU?" : "What did each CPU do?"}
      note={
        !hasVcpus
          ? "Only CPUs and threads are known here, no vCPUs: the recording contains no kvm_entry and kvm_exit with a thread."
          : ""
      }
      svg={() => {
        const drawn = vectorScene(moved(scene), numberOf(hash.value, "mark"), width);
        return standalone(drawn.inside, drawn.width, drawn.height);
      }}
      csv={() =>
        csv(
          ["state", "time_ns"],
          used.map((s) => [timeline.states[s]!.name, Math.round(sums[s]!)]),
        )
      }
      caption={
        isNone
          ? none
          : caption(
              states.map((state) => state.title),
              isKnown ? sums : [],
              total,
              window,
              counted(counts.length, vcpus.length > 0 || (open.length === 0 && hasVcpus) ? "vCPU" : "lane"),
              exact !== null,
              {
                covers: place.lanes.some((lane) => !lane.steps),
                stairs: place.lanes.some((lane) => lane.steps),
              },
              isKnown,
            )
      }
      tools={
        <>
          <Zoom />
          {ofServer && <ofServer.Perfetto recording={recording} />}
        </>
      }
    >
      {error && <p class="error">{error}</p>}
      <LaneTools recording={recording} lanes={open}>
        {ofServer && <ofServer.Arrows />}
      </LaneTools>
      <div
        class="lane-box"
        ref={box}
        style={{ height: `${height}px` }}
        onScroll={(event) => setScrolled(event.currentTarget.scrollTop)}
      >
        <div class="lane-sheet" style={{ height: `${place.height}px` }}>
          <div class="lanes" style={{ height: `${height}px` }}>
            {/* Before the names, so that no pin stands between the keyboard and the lanes. */}
            <div class="lane-canvas" ref={column}>
              <canvas ref={canvas} style={{ height: `${height}px` }} />
              <Over
                recording={recording}
                scene={scene}
                width={width}
                hasDetails={ofServer !== undefined}
                label={`Timeline of ${counted(lanes.length, "lane")}, ${duration(length)} shown. W and S zoom, A and D move, 0 shows all, Enter opens the details of a slice.`}
              />
            </div>
            <div class="lane-side">
              <Names timeline={timeline} place={seen} top={top} />
              <div class="axis-base" title="The marks of the axis count from this time on.">
                {axis.base}
              </div>
            </div>
          </div>
        </div>
      </div>
      {isNone && (
        <p class="soft">
          {none}{" "}
          <button type="button" class="link" onClick={() => go({ lanes: null, lane: null })}>
            Show all lanes
          </button>
        </p>
      )}
      <ul class="legend">
        {used.map((s) => (
          <li key={s}>
            <Swatch state={timeline.states[s]!.name} /> {timeline.states[s]!.title}{" "}
            <b>{isKnown ? percent(sums[s]! / total) : "…"}</b>
          </li>
        ))}
        {aside.map((s) => (
          <li key={s}>
            <Swatch state={timeline.states[s]!.name} /> {timeline.states[s]!.title}
          </li>
        ))}
      </ul>
      <Details
        recording={recording}
        lanes={open}
        OfSlice={ofServer?.OfSlice}
        OfReasons={ofServer?.OfReasons}
      />
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
      <Readout />
    </Figure>
  );
}

/** Lanes that are open, groups that are drawn as their mean, and what is wanted as a sum. */
function wantedOf(place: Layout, sum: number[][]): Wanted {
  const means = place.groups.filter((group) => group.mean).map((group) => group.lanes);
  const all = new Map([...means, ...sum].map((lanes) => [meanOf(lanes), lanes]));
  return { lanes: place.lanes.map((lane) => lane.id), means: [...all.values()] };
}

/** The scene as a picture by itself: its heights are those on screen. */
function moved(scene: Scene): Scene {
  const up = <T extends { top: number }>(it: T): T => ({ ...it, top: it.top - scene.top });
  const { groups, lanes } = scene.layout;
  return { ...scene, top: 0, layout: { ...scene.layout, groups: groups.map(up), lanes: lanes.map(up) } };
}

/** Whether any lane has the state here. */
function isPresent(tiles: Tile[], state: number): boolean {
  return tiles.at(-1)?.lanes.some((lane) => lane.present.some((bits) => (bits >>> state) & 1)) ?? false;
}
