/** What lies around the lanes: zoom buttons, the names and groups at the left, what the pointer is over. */
import type { Slice, Timeline } from "../../data/types";
import { counted, duration, instant } from "../../maths/format";
import { pan, zoom } from "../../maths/window";
import { go, hash, show, shown, whole, zoomed } from "../../state/store";
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

export function Tip({
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
