/** Below the lanes: one slice with its reason, its neighbours, its chain, who woke its thread, and who took the CPU. */
import { useEffect } from "preact/hooks";
import type { Recording } from "../../data/source";
import type { Lane, Slice, State, Wake } from "../../data/types";
import { counted, duration, placed } from "../../maths/format";
import type { Pick } from "../../maths/picked";
import { pick } from "../../state/picked";
import { go } from "../../state/store";
import { Swatch } from "../Figure";
import { useAnswer } from "../useAnswer";
import { Panel, useSaid, useSelected } from "./Details";
import { detailsAt, type SliceDetails } from "./slice";

const TASKS = 3;

interface Props {
  recording: Recording;
  picked: Pick;
  lane: Lane;
  /** Lanes in the order in which they are shown. */
  shown: number[];
}

export function OfSlice({ recording, picked, lane, shown }: Props) {
  const { states } = recording.timeline!;
  const { value, error, loading } = useAnswer(
    () => detailsAt(recording, picked.lane, picked.ns),
    [recording, picked.lane, picked.ns],
  );
  useSelected(value?.slice.from_ns, value?.slice.to_ns);
  useKeys(picked, shown, value);
  useSaid(value ? wordsOf(value, lane, states) : "");
  const label = "Details of the slice";
  if (!value) {
    const why = `Nothing is known of ${lane.title} at ${placed(picked.ns, 1)}.`;
    return (
      <Panel title={`${lane.group} ${lane.title}`} label={label}>
        <p>{error ?? (loading ? "Reading …" : why)}</p>
      </Panel>
    );
  }
  const { slice, before, after, chain, wake, cpu, by } = value;
  const state = states[slice.state]!;
  const length = slice.to_ns - slice.from_ns;
  const near = (one: Slice | null, ns: number) =>
    one ? (
      <button type="button" class="link" onClick={() => pick({ lane: picked.lane, ns })}>
        {`${[states[one.state]!.title, one.detail].filter(Boolean).join(" ")}, ${duration(one.to_ns - one.from_ns)}`}
      </button>
    ) : (
      "nothing"
    );
  const rows: [string, preact.ComponentChildren][] = [
    ["Length", duration(length)],
    ["Start", placed(slice.from_ns, length)],
    ["End", placed(slice.to_ns, length)],
    ["Lane", `${lane.group} ${lane.title}${lane.tid === null ? "" : `, thread ${lane.tid}`}`],
  ];
  if (slice.detail) rows.unshift(["Reason", slice.detail]);
  const took = by.slice(0, TASKS).map(({ task, time_ns }) => `${task} for ${duration(time_ns)}`);
  if (by.length > TASKS) took.push(counted(by.length - TASKS, "other task"));
  if (took.length > 0) rows.push(["Preempted by", `${took.join(", ")}, on ${cpu}`]);
  else if (cpu) rows.push([/^(preempted|runnable)$/.test(state.name) ? "Had run on" : "CPU", cpu]);
  if (wake) rows.push(["Woken", <Woken wake={wake} />]);
  if (chain)
    rows.push([
      "Chain",
      <>
        <button
          type="button"
          class="link"
          onClick={() => go({ view: "chains", chain: chain.id, pick: null }, true)}
        >
          {chain.reason}, {counted(chain.exits, "exit")} of L1
        </button>
        {chain.cost_ns === null ? ", not closed in the recording" : `, cost ${duration(chain.cost_ns)}`}
        {chain.interrupted && ", L1 halted inside"}
        {chain.migrated && ", another L2 guest ran next"}
      </>,
    ]);
  rows.push(["Before", near(before, slice.from_ns - 1)], ["After", near(after, slice.to_ns)]);
  return (
    <Panel
      title={
        <>
          <Swatch state={state.name} /> {state.title} {slice.detail}
        </>
      }
      label={label}
    >
      <dl>
        {rows.map(([name, words]) => (
          <div key={name}>
            <dt>{name}</dt>
            <dd>{words}</dd>
          </div>
        ))}
      </dl>
    </Panel>
  );
}

/** `L0: KVM VMREAD, 1.2 us from 0.123456 s, VM 1 vCPU 0`. */
function wordsOf({ slice }: SliceDetails, lane: Lane, states: State[]): string {
  const length = slice.to_ns - slice.from_ns;
  const what = [states[slice.state]!.title, slice.detail].filter(Boolean).join(" ");
  return `${what}, ${duration(length)} from ${placed(slice.from_ns, length)}, ${lane.group} ${lane.title}`;
}

/** Who woke the thread and when it ran; a waker with a lane is a link to where it was just then. */
function Woken({ wake: { woken_ns, ran_ns, cpu, by } }: { wake: Wake }) {
  const { lane, name } = by ?? { lane: null, name: null };
  const waker =
    lane === null ? (
      name
    ) : (
      <button type="button" class="link" onClick={() => pick({ lane, ns: woken_ns })}>
        {name}
      </button>
    );
  const delay = ran_ns - woken_ns;
  return (
    <>
      {waker && <>by {waker} </>}
      at {placed(woken_ns, Math.max(1, delay))}, ran {delay > 0 ? `${duration(delay)} later` : "at once"}
      {cpu !== null && ` on CPU ${cpu}`}
      {!waker && "; by whom is not known"}
    </>
  );
}

/** Keys that go on from here: to the slices before and after, and with the lanes in focus to those above and below. */
function useKeys(picked: Pick, shown: number[], known: SliceDetails | null): void {
  useEffect(() => {
    const press = (event: KeyboardEvent) => {
      const target = event.target as HTMLElement;
      if (event.ctrlKey || event.metaKey || event.altKey || /^(INPUT|SELECT)$/.test(target.tagName)) return;
      const by = event.key === "ArrowDown" ? 1 : event.key === "ArrowUp" ? -1 : 0;
      if (by !== 0 && target.classList.contains("above")) {
        event.preventDefault();
        const lane = shown[shown.indexOf(picked.lane) + by];
        if (lane !== undefined) pick({ lane, ns: picked.ns });
      } else if (event.key === "," && known?.before) pick({ lane: picked.lane, ns: known.slice.from_ns - 1 });
      else if (event.key === "." && known?.after) pick({ lane: picked.lane, ns: known.slice.to_ns });
    };
    addEventListener("keydown", press);
    return () => removeEventListener("keydown", press);
  }, [picked.lane, picked.ns, shown.join(), known]);
}
