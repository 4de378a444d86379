/** The gauge wall of a recording that is being made: `#live=ID`. It needs no report, so it works from the first second. */

import { useEffect, useState } from "preact/hooks";
import { follow, isRate, type LiveState, type RateLook, type Sample, withSample } from "../data/live";
import { fillOf } from "../draw/tokens";
import { bytes, counted, grouped, instant, percent, roundDuration } from "../maths/format";
import { liveSeries, pieces } from "../maths/live";
import { csv } from "../maths/rows";
import { go } from "../state/store";
import { Empty, Figure } from "./Figure";
import { GaugeWall } from "./Gauge";
import { Rates } from "./Rates";
import { Wall } from "./Wall";

const STATES: Record<Exclude<LiveState["kind"], "refused">, string> = {
  waiting: "Waiting for the first sample …",
  live: "live",
  lost: "The server does not answer; trying again. The values shown are the last ones received.",
  ended: "The recording has ended. These are its last samples.",
  silent: "The recorder has stopped sending: it was killed, or its host is down. These are its last samples.",
};

/** A gauge is stale after so many samples that did not come. */
const MISSED = 2;
const STALE =
  "The last samples are stale: two are missing. Between trials a lab prepares the next one and counts nothing.";

export function Live({ id }: { id: string }) {
  const [heard, setHeard] = useState<(Sample | RateLook)[]>([]);
  const [stale, setStale] = useState(false);
  const [state, setState] = useState<LiveState>({ kind: "waiting" });
  const [held, setHeld] = useState<number | null>(null);
  useEffect(() => {
    setHeard([]);
    setHeld(null);
    setState({ kind: "waiting" });
    return follow(id, (sample) => setHeard((before) => withSample(before, sample)), setState);
  }, [id]);
  const every_ns = state.kind === "live" ? state.every_ns : 0;
  const latest = heard.at(-1)?.number;
  useEffect(() => {
    setStale(false);
    if (every_ns === 0) return;
    const timer = setTimeout(() => setStale(true), (MISSED + 1) * (every_ns / 1e6));
    return () => clearTimeout(timer);
  }, [latest, every_ns]);
  // A place in time, not in the list: the list moves on while somebody looks back.
  const found = held === null ? -1 : heard.findIndex((sample) => sample.number >= held);
  const index = found < 0 ? heard.length - 1 : found;
  const now = heard[index];
  if (state.kind === "refused") {
    return (
      <Empty title="No live gauges">
        {state.sentence} <Back id={id} />
      </Empty>
    );
  }
  const line =
    state.kind === "live" ? `live, a sample every ${roundDuration(state.every_ns)}` : STATES[state.kind];
  if (!now) {
    return (
      <Empty title={id}>
        {state.kind === "live" ? STATES.waiting : line} <Back id={id} />
      </Empty>
    );
  }
  const tools = (
    <>
      <span class={`pulse ${state.kind}`} role="status">
        {line}
      </span>
      <button
        type="button"
        aria-pressed={held !== null}
        onClick={() => setHeld(held === null ? now.number : null)}
      >
        Hold
      </button>
      <input
        type="range"
        min="0"
        max={heard.length - 1}
        value={index}
        aria-label="Sample"
        onInput={(event) => setHeld(heard[Number(event.currentTarget.value)]?.number ?? null)}
      />
      <Back id={id} />
      <Wall />
    </>
  );
  if (isRate(now)) {
    const looks = heard.filter(isRate);
    const note = stale && state.kind === "live" ? STALE : "";
    return <Rates id="live" looks={looks} index={index} stale={note !== ""} note={note} tools={tools} />;
  }
  const samples = heard.filter((sample): sample is Sample => !isRate(sample));
  const series = liveSeries(samples);
  return (
    <Figure
      id="live"
      title={`${id}${held === null && state.kind === "live" ? ", live" : ` at ${instant(now.to_ns, 1e8)}`}`}
      picture={false}
      csv={() =>
        csv(
          ["to_ns", ...series.map((it) => it.title)],
          samples.map((sample, i) => [sample.to_ns, ...series.map((it) => it.values[i] ?? null)]),
        )
      }
      caption={`${counted(samples.length, "sample")}, the last up to ${instant(samples.at(-1)!.to_ns, 1e8)}; ${bytes(now.bytes)} recorded${now.lost_events > 0 ? `, ${counted(now.lost_events, "event")} lost` : ", no events lost"}. ${now.seen_share < 0.999 ? `More was recorded than could be evaluated: these numbers are of ${percent(now.seen_share)} of the time. ` : ""}The thin marks on a bar are the lowest and the highest of these samples. Shares are of the time of ${counted(now.vcpus, "vCPU")}.`}
      tools={tools}
    >
      <GaugeWall series={series} index={index} />
      {now.vms.length > 1 && <Vms sample={now} />}
    </Figure>
  );
}

function Back({ id }: { id: string }) {
  return (
    <button type="button" onClick={() => go({ live: null, wall: null, r: id }, true)}>
      Open the recording
    </button>
  );
}

/** A row for each VM: where its vCPUs were, as a bar. */
function Vms({ sample }: { sample: Sample }) {
  return (
    <table class="numbers vms">
      <thead>
        <tr>
          <th>VM</th>
          <th class="number">vCPUs</th>
          <th class="number">Exits per second</th>
          <th>Where its time went</th>
        </tr>
      </thead>
      <tbody>
        {sample.vms.map((vm) => (
          <tr key={vm.vm}>
            <td>
              <b>{vm.vm}</b>
            </td>
            <td class="number">{vm.vcpus}</td>
            <td class="number">{vm.exits_per_second === null ? "–" : grouped(vm.exits_per_second)}</td>
            <td>
              <svg
                width="320"
                height="16"
                viewBox="0 0 1000 16"
                preserveAspectRatio="none"
                aria-hidden="true"
              >
                {pieces(vm.shares).map((piece) => (
                  <rect
                    key={piece.state}
                    x={piece.from * 1000}
                    width={piece.size * 1000}
                    height="16"
                    fill={fillOf(piece.state)}
                  >
                    <title>{`${piece.title}: ${percent(piece.size)}`}</title>
                  </rect>
                ))}
              </svg>
              <span class="hidden">
                {pieces(vm.shares)
                  .map((piece) => `${piece.title} ${percent(piece.size)}`)
                  .join(", ")}
              </span>
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}
