/** What lies around the lanes: zoom buttons, the names and groups at the left, what the pointer is over. */
import type { Timeline } from "../../data/types";
import { counted } from "../../maths/format";
import { pan, zoom } from "../../maths/window";
import { go, hash, show, shown, whole, zoomed } from "../../state/store";
import type { Layout } from "./layout";
import { pinned, turnPin } from "./order";

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

/** Names of lanes, as far as they are on screen, moved as the lanes are. */
export function Names({ timeline, place, top }: { timeline: Timeline; place: Layout; top: number }) {
  const pins = pinned();
  return (
    <ul class="lane-names">
      {place.groups.map((group) => (
        <li
          key={group.key}
          class={group.mean ? "group" : "group open"}
          style={{ top: `${group.top - top}px`, height: `${group.height}px` }}
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
        const beside = lane.alone ? it.group : "";
        const on = pins.includes(lane.id);
        return (
          <li
            key={lane.id}
            class={lane.steps ? "stepped" : undefined}
            style={{ top: `${lane.top - top}px`, height: `${lane.height}px` }}
          >
            <strong title={`${it.group} ${it.title}`}>{it.title}</strong>
            {beside && <span title={beside}>{beside}</span>}
            {it.chains > 0 && lane.height >= 60 && <span>{counted(it.chains, "chain")}</span>}
            <button
              type="button"
              class="pin"
              aria-pressed={on}
              aria-label={`Pin ${it.title} of ${it.group}`}
              title={on ? "Unpin" : "Pin: show it first"}
              onClick={() => turnPin(lane.id)}
            >
              {on ? "★" : "☆"}
            </button>
            {lane.steps && (
              <span class="rows" aria-hidden="true">
                {lane.steps.map((step) => (
                  <span class="step" key={step}>
                    {step}
                  </span>
                ))}
              </span>
            )}
          </li>
        );
      })}
    </ul>
  );
}

export function Tip({
  lines,
  x,
  y,
  wide,
  high,
}: {
  lines: string[];
  x: number;
  y: number;
  wide: number;
  high: number;
}) {
  const side = x > wide / 2 ? { right: `${wide - x + 12}px` } : { left: `${x + 12}px` };
  // Lines break where the canvas ends, so that nothing lies on the names. Below the pointer where there is room, else above.
  const tall = lines.length * 20 + 24;
  const place = y + tall > high && y > high / 2 ? { bottom: `${high - y + 8}px` } : { top: `${y + 14}px` };
  return (
    <div class="tip" style={{ ...place, ...side }}>
      {lines.map((line) => (
        <div key={line}>{line}</div>
      ))}
    </div>
  );
}
