/** View 'Gauges': the recording played back on dials, as on a wall beside the test. */
import { useEffect, useRef, useState } from "preact/hooks";
import type { Recording } from "../data/source";
import { vcpuLanes } from "../data/types";
import { duration, grouped, instant, percent } from "../maths/format";
import { arc, onDial, type Series, seriesOf } from "../maths/gauges";
import { csv } from "../maths/rows";
import { go, hash, whole } from "../state/store";
import { Empty, Figure } from "./Figure";
import { useAnswer } from "./useAnswer";
import { allChains } from "./useChains";
import { useWindow } from "./useReport";

const SAMPLES = 600;
const BACK = 24;
const SPEEDS = [0.01, 0.1, 0.25, 1, 4];

export function Gauges({ recording }: { recording: Recording }) {
  const timeline = recording.timeline;
  const narrow = useWindow();
  const span = narrow ?? whole.value;
  const { value: series, error } = useAnswer(async () => {
    if (!timeline) return [];
    const [tile, all] = await Promise.all([
      recording.tile(span.t0, span.t1, SAMPLES),
      allChains(recording, narrow),
    ]);
    return seriesOf(tile, vcpuLanes(timeline), timeline.states, all.chains, BACK);
  }, [recording, span.t0, span.t1]);
  const [at, setAt] = useState(Number(hash.value.at ?? 1));
  const [playing, setPlaying] = useState(false);
  const speed = Number(hash.value.speed ?? 0.25);
  const length = span.t1 - span.t0;
  const last = useRef(0);
  useEffect(() => {
    if (!playing) return;
    last.current = performance.now();
    let handle = requestAnimationFrame(function step(now) {
      const by = ((now - last.current) * 1e6 * speed) / length;
      last.current = now;
      setAt((at) => Math.min(1, at + by));
      handle = requestAnimationFrame(step);
    });
    return () => cancelAnimationFrame(handle);
  }, [playing, speed, length]);
  useEffect(() => {
    if (at >= 1) setPlaying(false);
  }, [at]);
  if (error) return <Empty title="The gauges have nothing to show">{error}</Empty>;
  if (!timeline)
    return (
      <Empty title="The gauges have nothing to show">
        They need vCPUs: <code>kvmscope record</code> on the host brings kvm_entry and kvm_exit.
      </Empty>
    );
  if (!series)
    return (
      <p class="loading" role="status">
        Reading the timeline …
      </p>
    );
  const index = Math.min(SAMPLES - 1, Math.floor(at * SAMPLES));
  const wall = hash.value.wall === "1";
  const seek = (share: number) => {
    setAt(share);
    go({ at: share.toFixed(4) });
  };
  return (
    <Figure
      id="gauges"
      title="How did it run?"
      picture={false}
      csv={() =>
        csv(
          ["time_ns", ...series.map((it) => it.title)],
          Array.from({ length: SAMPLES }, (_, i) => [
            Math.round(span.t0 + ((i + 1) / SAMPLES) * length),
            ...series.map((it) => it.values[i] ?? null),
          ]),
        )
      }
      caption={`At ${instant(Math.round(span.t0 + at * length), Math.min(1e6, length / 100))}, each value over the ${duration((length / SAMPLES) * BACK)} before it. The thin marks on a dial are the lowest and highest values of what is shown; the line below shows all of it. Shares are of all vCPUs' time.`}
      tools={
        <>
          <button
            type="button"
            aria-pressed={playing}
            onClick={() => {
              if (at >= 1) setAt(0);
              setPlaying(!playing);
            }}
          >
            {playing ? "Pause" : "Play"}
          </button>
          <select
            aria-label="Speed"
            value={String(speed)}
            onChange={(event) => go({ speed: event.currentTarget.value })}
          >
            {SPEEDS.map((it) => (
              <option key={it} value={String(it)}>
                {it}×
              </option>
            ))}
          </select>
          <input
            type="range"
            min="0"
            max="1"
            step="0.001"
            aria-label="Place in the recording"
            value={at}
            onInput={(event) => seek(Number(event.currentTarget.value))}
          />
          <button
            type="button"
            aria-pressed={wall}
            onClick={() => {
              go({ wall: wall ? null : "1" });
              if (!wall) void document.documentElement.requestFullscreen?.().catch(() => undefined);
              else if (document.fullscreenElement) void document.exitFullscreen();
            }}
          >
            Full screen
          </button>
        </>
      }
    >
      <div class="dials">
        {series.map((it) => (
          <Dial key={it.title} series={it} index={index} />
        ))}
      </div>
    </Figure>
  );
}

function print(value: number, unit: Series["unit"]): [string, string] {
  if (unit === "share") return [percent(value), ""];
  if (unit === "per second") return [grouped(value), "per second"];
  if (unit === "exits") return [value.toFixed(1), "exits"];
  const [number = "", words = ""] = duration(Math.round(value)).split(" ");
  return [number, words];
}

function Dial({ series, index }: { series: Series; index: number }) {
  const value = series.values[index] ?? 0;
  const share = value / series.most;
  const [figure, unit] = print(value, series.unit);
  const low = Math.min(...series.values) / series.most;
  const high = Math.max(...series.values) / series.most;
  const fill = series.state ? `var(--state-${series.state})` : "var(--ink)";
  const tip = onDial(share, 66);
  const points = series.values.map(
    (it, i) =>
      `${(-84 + (168 * i) / (series.values.length - 1)).toFixed(1)},${(128 - (30 * it) / Math.max(1e-9, Math.max(...series.values))).toFixed(1)}`,
  );
  return (
    <svg
      class="picture dial"
      viewBox="-100 -92 200 232"
      role="img"
      aria-label={`${series.title}: ${figure} ${unit}`}
    >
      <path d={arc(0, 1, 74)} fill="none" stroke="var(--grid)" stroke-width="13" />
      {share > 0.002 && (
        <path d={arc(0, Math.min(1, share), 74)} fill="none" stroke={fill} stroke-width="13" />
      )}
      {[low, high].map((mark, i) => {
        const a = onDial(mark, 64);
        const b = onDial(mark, 85);
        return (
          <line
            key={i === 0 ? "low" : "high"}
            x1={a.x}
            y1={a.y}
            x2={b.x}
            y2={b.y}
            stroke="var(--soft)"
            stroke-width="1.2"
          />
        );
      })}
      <line
        x1={tip.x * 0.9}
        y1={tip.y * 0.9}
        x2={tip.x * 1.24}
        y2={tip.y * 1.24}
        stroke="var(--ink)"
        stroke-width="2.6"
        stroke-linecap="round"
      />
      <text y="8" text-anchor="middle" font-size="27" font-weight="650" letter-spacing="-0.6">
        {figure}
      </text>
      <text class="faint" y="28" text-anchor="middle" font-size="12">
        {unit}
      </text>
      <text x={onDial(0, 74).x} y="70" text-anchor="middle" font-size="9.5" class="faint">
        0
      </text>
      <text x={onDial(1, 74).x} y="70" text-anchor="middle" font-size="9.5" class="faint">
        {print(series.most, series.unit)
          .join(" ")
          .replace(" per second", "/s")
          .replace(" exits", "")
          .replace(".0 %", " %")
          .replace(/\.0+(?= |$)/, "")}
      </text>
      <text y="88" text-anchor="middle" font-size="12.5" font-weight="600">
        {series.title}
      </text>
      <polyline points={points.join(" ")} fill="none" stroke="var(--soft)" stroke-width="1.1" />
      <line
        x1={-84 + (168 * index) / (series.values.length - 1)}
        x2={-84 + (168 * index) / (series.values.length - 1)}
        y1="96"
        y2="130"
        stroke="var(--ink)"
        stroke-width="1.4"
      />
    </svg>
  );
}
