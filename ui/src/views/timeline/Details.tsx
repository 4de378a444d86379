/** Below the lanes: what is known of the slice that was picked (OfSlice.tsx), or of the area that was chosen. */
import { signal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { listOf, meanOf } from "../../data/lanes";
import type { Recording } from "../../data/source";
import { stackOrder } from "../../draw/tokens";
import { counted, duration, percent, placed } from "../../maths/format";
import { type Area, areaOf, pickOf } from "../../maths/picked";
import { around } from "../../maths/window";
import { chooseNothing } from "../../state/picked";
import { endGesture, hash, selected, show } from "../../state/store";
import { Swatch } from "../Figure";
import { useAnswer } from "../useAnswer";
import type { OfReasons } from "./OfReasons";
import type { OfSlice } from "./OfSlice";
import { totalOf } from "./sums";

const SAMPLES = 2048;

interface Props {
  recording: Recording;
  /** Those that are shown, in their order. */
  lanes: number[];
  /** Where single slices are known, which a report file knows only inside some chains. */
  OfSlice: typeof OfSlice | undefined;
  OfReasons: typeof OfReasons | undefined;
}

/** What is chosen, in room that is kept for it: whatever opens here moves nothing. */
export function Details(props: Props) {
  return (
    <div class="details-room">
      <Chosen {...props} />
      <p class="hidden" role="status">
        {said.value}
      </p>
    </div>
  );
}

function Chosen({ recording, lanes: shown, OfSlice, OfReasons }: Props) {
  const picked = pickOf(hash.value);
  const area = areaOf(hash.value);
  const known = recording.timeline!.lanes;
  if (OfSlice && picked && known[picked.lane])
    return <OfSlice recording={recording} picked={picked} lane={known[picked.lane]!} shown={shown} />;
  const lanes = area?.lanes.filter((id) => known[id]) ?? [];
  return area && lanes.length > 0 ? (
    <OfArea recording={recording} area={{ ...area, lanes }} OfReasons={OfReasons} />
  ) : (
    <p class="nothing">
      Drag to move, ctrl-wheel to zoom, shift-drag to choose an area,{" "}
      {OfSlice ? "click for details, double-click to zoom to them" : "click to open a chain"}.
    </p>
  );
}

export function Panel({
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

/** What is chosen, in words for who does not see it change. */
const said = signal("");

/** Says them once they are known, and again where they change. */
export function useSaid(words: string): void {
  useEffect(() => {
    said.value = words;
    return () => {
      said.value = "";
    };
  }, [words]);
}

/** Says what is chosen to the keys, for as long as it is shown. */
export function useSelected(t0: number | undefined, t1: number | undefined): void {
  useEffect(() => {
    selected.value = t0 === undefined || t1 === undefined ? null : { t0, t1 };
    return () => {
      selected.value = null;
    };
  }, [t0, t1]);
}

function OfArea({
  recording,
  area,
  OfReasons,
}: {
  recording: Recording;
  area: Area;
  OfReasons: Props["OfReasons"];
}) {
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
  const title = `${duration(t1 - t0)} from ${placed(t0, t1 - t0)}, ${one ? `${one.group} ${one.title}` : counted(lanes.length, "lane")}`;
  useSaid(title);
  return (
    <Panel title={title} label="Details of the area">
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
          {OfReasons && value.reasons && <OfReasons reasons={value.reasons} states={states} />}
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
