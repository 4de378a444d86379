/** What lies around the lanes: zoom buttons, the names and groups at the left, what the pointer is over. */
import { openInPerfetto } from "../../data/perfetto";
import type { Recording } from "../../data/source";
import type { Timeline } from "../../data/types";
import { counted, instant } from "../../maths/format";
import { pan, zoom } from "../../maths/window";
import { go, hash, notice, show, shown, whole, zoomed } from "../../state/store";
import type { Layout } from "./layout";

export function Zoom() {
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

/** What is shown, in the Perfetto UI; nothing where no server has it. */
export function Perfetto({ recording }: { recording: Recording }) {
  if (!recording.perfetto) return null;
  const open = async () => {
    const { t0, t1 } = shown.value;
    notice.value = "Opening ui.perfetto.dev …";
    try {
      const made = recording.perfetto!(t0, t1);
      await openInPerfetto(
        made.then((it) => it.buffer),
        `${recording.id}, ${instant(t0)} to ${instant(t1)}`,
      );
      const { left_out } = await made;
      notice.value =
        left_out > 0
          ? `Opened in Perfetto, without the last ${counted(left_out, "slice")}.`
          : "Opened in Perfetto.";
    } catch (error) {
      notice.value = (error as Error).message;
    }
  };
  return (
    <button
      type="button"
      onClick={() => void open()}
      title="Opens what is shown in ui.perfetto.dev, in another tab. That page comes from the network; the trace stays in the browser."
    >
      Perfetto ↗
    </button>
  );
}

/** Groups that the address turns: those open that are folded by themselves, and the other way round. */
export function turnedGroups(): Set<string> {
  return new Set((hash.value.groups ?? "").split("\t").filter(Boolean));
}

function turn(key: string): void {
  const turned = turnedGroups();
  if (!turned.delete(key)) turned.add(key);
  go({ groups: [...turned].join("\t") });
}

export function Names({ timeline, place }: { timeline: Timeline; place: Layout }) {
  return (
    <ul class="lane-names" style={{ height: `${place.height}px` }}>
      {place.groups.map((group) => (
        <li
          key={group.key}
          class={group.folded ? "group" : "group open"}
          style={{ top: `${group.top}px`, height: `${group.height}px` }}
        >
          <button
            type="button"
            aria-expanded={!group.folded}
            title={group.title}
            onClick={() => turn(group.key)}
          >
            <i aria-hidden="true">{group.folded ? "▸" : "▾"}</i> {group.title}
          </button>
        </li>
      ))}
      {place.lanes.map((lane) => {
        const it = timeline.lanes.find((known) => known.id === lane.id)!;
        const beside = place.groups.length > 0 ? "" : it.group;
        return (
          <li key={lane.id} style={{ top: `${lane.top}px`, height: `${lane.height}px` }}>
            <strong title={it.title}>{it.title}</strong>
            {beside && <span title={beside}>{beside}</span>}
            {it.chains > 0 && lane.height >= 48 && <span>{counted(it.chains, "chain")}</span>}
          </li>
        );
      })}
    </ul>
  );
}

export function Tip({ lines, x, y, wide }: { lines: string[]; x: number; y: number; wide: number }) {
  const side = x > wide / 2 ? { right: `${wide - x + 12}px` } : { left: `${x + 12}px` };
  return (
    <div class="tip" style={{ top: `${y + 14}px`, ...side }}>
      {lines.map((line) => (
        <div key={line}>{line}</div>
      ))}
    </div>
  );
}
