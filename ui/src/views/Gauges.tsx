/** View 'Gauges': the recording played back, as on a wall beside the test. */
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import type { Recording } from "../data/source";
import { vcpuLanes } from "../data/types";
import { duration, instant } from "../maths/format";
import { seriesOf } from "../maths/gauges";
import { looksOf } from "../maths/rates";
import { csv } from "../maths/rows";
import { go, hash, whole } from "../state/store";
import { Empty, Figure } from "./Figure";
import { GaugeWall } from "./Gauge";
import { Player } from "./Player";
import { Replay } from "./Replay";
import { useAnswer } from "./useAnswer";
import { useWindow } from "./useReport";

const SAMPLES = 600;
const BACK = 24;
/** Where the gauges open: in the middle, because a recording mostly ends idle. */
const START = 0.5;
const SPEEDS = [0.01, 0.1, 0.25, 1, 4];

export function Gauges({ recording }: { recording: Recording }) {
  const looks = useMemo(() => looksOf(recording.report), [recording]);
  // Trials of a datapath have gauges of their own, and no vCPU: the trace beside them is of polling threads.
  const { timeline } = recording;
  if (looks.length > 0 && !(timeline && vcpuLanes(timeline).length > 0))
    return <Replay id={recording.id} looks={looks} />;
  return <Vcpus recording={recording} />;
}

function Vcpus({ recording }: { recording: Recording }) {
  const timeline = recording.timeline;
  const narrow = useWindow();
  const span = narrow ?? whole.value;
  const { value: shown, error } = useAnswer(async () => {
    // Without a vCPU no lane would be asked for, and a tile of no lane is one of all lanes.
    if (!timeline || vcpuLanes(timeline).length === 0) return { series: [], missing: false };
    const [tile, all] = await Promise.all([
      recording.tile(span.t0, span.t1, SAMPLES, { lanes: vcpuLanes(timeline), means: [] }),
      recording.aggregates(narrow),
    ]);
    // A report file has the sums of chains for the whole recording alone.
    const missing = narrow !== null && all === null && recording.inlined;
    return { series: seriesOf(tile, vcpuLanes(timeline), timeline.states, all, BACK), missing };
  }, [recording, span.t0, span.t1]);
  const asked = hash.value.at === undefined ? START : Number(hash.value.at);
  const misplaced = !(asked >= 0 && asked <= 1);
  const [at, setAt] = useState(misplaced ? START : asked);
  const [playing, setPlaying] = useState(false);
  const speed = SPEEDS.find((it) => String(it) === hash.value.speed) ?? 0.25;
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
  if (error) return <Empty title="No gauges">{error}</Empty>;
  if (!timeline || vcpuLanes(timeline).length === 0)
    return (
      <Empty title="No gauges">
        Gauges need vCPUs, or trials of a datapath: run <code>kvmscope record</code> on the host to record
        kvm_entry and kvm_exit, or <code>kvmscope lab ovs</code>.
      </Empty>
    );
  if (!shown)
    return (
      <p class="loading" role="status">
        Reading the timeline …
      </p>
    );
  const { series, missing } = shown;
  if (series.length === 0) return <Empty title="No gauges">No vCPU time is known in this window.</Empty>;
  const notes = [
    misplaced
      ? `at=${hash.value.at} is not a position in the recording: 0 is its start and 1 its end. The middle is shown.`
      : "",
    missing ? "Gauges of chains are not shown: a report file has them only for the whole recording." : "",
  ];
  const index = Math.min(SAMPLES - 1, Math.floor(at * SAMPLES));
  const seek = (share: number) => {
    setAt(share);
    go({ at: share.toFixed(4) });
  };
  return (
    <Figure
      id="gauges"
      title="How did it run?"
      picture={false}
      note={notes.filter(Boolean).join(" ")}
      csv={() =>
        csv(
          ["time_ns", ...series.map((it) => it.title)],
          Array.from({ length: SAMPLES }, (_, i) => [
            Math.round(span.t0 + ((i + 1) / SAMPLES) * length),
            ...series.map((it) => it.values[i] ?? null),
          ]),
        )
      }
      caption={`Values at ${instant(Math.round(span.t0 + at * length), Math.min(1e6, length / 100))}, each over the ${duration((length / SAMPLES) * BACK)} before. The thin marks on a bar are the lowest and the highest value, the line below it is the value over time. Shares are of the time of all vCPUs.`}
      tools={
        <Player
          id={recording.id}
          playing={playing}
          play={() => {
            if (at >= 1) setAt(0);
            setPlaying(!playing);
          }}
          speeds={SPEEDS}
          speed={speed}
          label="Position in the recording"
          value={at}
          most={1}
          step={0.001}
          seek={seek}
        />
      }
    >
      <GaugeWall series={series} index={index} />
    </Figure>
  );
}
