/** Below the lanes: what is known of the slice that was picked, or of the area that was chosen. */
import { useEffect } from "preact/hooks";
import { listOf, meanOf } from "../../data/lanes";
import type { Recording } from "../../data/source";
import type { Lane, Slice } from "../../data/types";
import { stackOrder } from "../../draw/tokens";
import { counted, duration, grouped, percent, placed } from "../../maths/format";
import { type Area, areaOf, type Pick, pickOf } from "../../maths/picked";
import { around } from "../../maths/window";
import { chooseNothing, pick } from "../../state/picked";
import { endGesture, go, hash, selected, show } from "../../state/store";
import { Swatch } from "../Figure";
import { useAnswer } from "../useAnswer";
import { detailsAt } from "./details";
import { totalOf } from "./sums";

const SAMPLES = 2048;

export function Details({ recording }: { recording: Recording }) {
  const picked = pickOf(hash.value);
  const area = areaOf(hash.value);
  const known = recording.timeline!.lanes;
  if (picked && known[picked.lane])
    return <OfSlice recording={recording} picked={picked} lane={known[picked.lane]!} />;
  const lanes = area?.lanes.filter((id) => known[id]) ?? [];
  return area && lanes.length > 0 ? <OfArea recording={recording} area={{ ...area, lanes }} /> : null;
}

function Panel({
  title,
  label,
  children,
}: {
  title: preact.ComponentChildren;
  label: string;
  children: preact.ComponentChildren;
}) {
  return (
    <section class="details" aria-label={label}>
      <header>
        <h3>{title}</h3>
        <span class="tools">
          <button
            type="button"
            title="f"
            disabled={!selected.value}
            onClick={() => {
              endGesture();
              if (selected.value) show(around(selected.value));
            }}
          >
            Zoom to it
          </button>
          <button type="button" title="Esc" aria-label="Close the details" onClick={chooseNothing}>
            ×
          </button>
        </span>
      </header>
      {children}
    </section>
  );
}

/** Says what is chosen to the keys, for as long as it is shown. */
function useSelected(t0: number | undefined, t1: number | undefined): void {
  useEffect(() => {
    selected.value = t0 === undefined || t1 === undefined ? null : { t0, t1 };
    return () => {
      selected.value = null;
    };
  }, [t0, t1]);
}

function OfSlice({ recording, picked, lane }: { recording: Recording; picked: Pick; lane: Lane }) {
  const { states } = recording.timeline!;
  const { value, error, loading } = useAnswer(
    () => detailsAt(recording, picked.lane, picked.ns),
    [recording, picked.lane, picked.ns],
  );
  useSelected(value?.slice.from_ns, value?.slice.to_ns);
  const label = "Details of the slice";
  if (!value) {
    const why = recording.inlined
      ? "A report file has single slices inside the chains that it contains, and none here. `kvmscope serve` has all."
      : `Nothing is known of ${lane.title} at ${placed(picked.ns, 1)}.`;
    return (
      <Panel title={`${lane.group} ${lane.title}`} label={label}>
        <p>{error ?? (loading ? "Reading …" : why)}</p>
      </Panel>
    );
  }
  const { slice, before, after, chain, cpu, by } = value;
  const state = states[slice.state]!;
  const length = slice.to_ns - slice.from_ns;
  const near = (one: Slice | null, ns: number) =>
    one ? (
      <button type="button" class="link" onClick={() => pick({ lane: picked.lane, ns })}>
        {states[one.state]!.title} {one.detail}, {duration(one.to_ns - one.from_ns)}
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
  if (by) rows.push(["Preempted by", `${by}, on ${cpu}`]);
  else if (cpu) rows.push([/^(preempted|runnable)$/.test(state.name) ? "Had run on" : "CPU", cpu]);
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

function OfArea({ recording, area }: { recording: Recording; area: Area }) {
  const { states, lanes: all } = recording.timeline!;
  const { lanes, window } = area;
  const { t0, t1 } = window;
  useSelected(t0, t1);
  const { value, error } = useAnswer(async () => {
    const [each, reasons] = await Promise.all([
      recording.states(lanes, t0, t1),
      recording.reasons(lanes, t0, t1),
    ]);
    return { sums: each ? totalOf(each) : await sampled(recording, area), exact: each !== null, reasons };
  }, [recording, t0, t1, listOf(lanes)]);
  const total = value?.sums.reduce((a, b) => a + b, 0) ?? 0;
  const order = stackOrder(states.map((state) => state.name)).filter((s) => (value?.sums[s] ?? 0) > 0);
  order.sort((a, b) => value!.sums[b]! - value!.sums[a]!);
  const one = lanes.length === 1 ? all[lanes[0]!] : null;
  return (
    <Panel
      title={`${duration(t1 - t0)} from ${placed(t0, t1 - t0)}, ${one ? `${one.group} ${one.title}` : counted(lanes.length, "lane")}`}
      label="Details of the area"
    >
      {!value ? (
        <p>{error ?? "Reading …"}</p>
      ) : (
        <div class="area">
          <table class="numbers">
            <thead>
              <tr>
                <th>State</th>
                <th class="number">{value.exact ? "Share" : "Share, about"}</th>
                <th class="number">Time</th>
              </tr>
            </thead>
            <tbody>
              {order.map((s) => (
                <tr key={s}>
                  <td>
                    <Swatch state={states[s]!.name} /> {states[s]!.title}
                  </td>
                  <td class="number">{percent(value.sums[s]! / total)}</td>
                  <td class="number">{duration(Math.round(value.sums[s]!))}</td>
                </tr>
              ))}
            </tbody>
          </table>
          {value.reasons && value.reasons.reasons.length > 0 && (
            <table class="numbers">
              <thead>
                <tr>
                  <th>Reason</th>
                  <th>State</th>
                  <th class="number">Slices</th>
                  <th class="number">Time</th>
                </tr>
              </thead>
              <tbody>
                {value.reasons.reasons.map(({ state, detail, slices, time_ns }) => (
                  <tr key={`${state}/${detail}`}>
                    <td>
                      <b>{detail}</b>
                    </td>
                    <td>{states[state]!.title}</td>
                    <td class="number">{grouped(slices)}</td>
                    <td class="number">{duration(time_ns)}</td>
                  </tr>
                ))}
              </tbody>
            </table>
          )}
          {value.reasons && value.reasons.left_out > 0 && (
            <p class="soft">and {counted(value.reasons.left_out, "other reason")} that took less</p>
          )}
          {!value.reasons && (
            <p class="soft">
              A report file has no reasons of an area, and shares as far as its pixels tell; kvmscope serve
              has both.
            </p>
          )}
        </div>
      )}
    </Panel>
  );
}

/** Of a source that has no exact sums: what its pixels say, which is exact but for their edges. */
async function sampled(recording: Recording, { window, lanes }: Area): Promise<number[]> {
  const { t0, t1 } = window;
  const tile = await recording.tile(t0, t1, SAMPLES, { lanes: [], means: [lanes] });
  const { cover } = tile.lanes.find(({ lane }) => lane === meanOf(lanes))!;
  const scale = ((t1 - t0) * lanes.length) / (255 * SAMPLES);
  return recording.timeline!.states.map((_, s) => {
    let sum = 0;
    for (let at = s; at < cover.length; at += tile.states) sum += cover[at]!;
    return sum * scale;
  });
}
