/** Above the lanes: which of them, in which order, and the search through all their slices. */
import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import { listOf } from "../../data/lanes";
import type { Recording } from "../../data/source";
import { vcpuLanes } from "../../data/types";
import { counted, grouped } from "../../maths/format";
import { pickOf } from "../../maths/picked";
import { showing } from "../../maths/window";
import { pick } from "../../state/picked";
import { go, hash, selected, show, shown, whole } from "../../state/store";
import { ORDERS } from "./order";

interface Props {
  recording: Recording;
  /** Those that are shown, which a search goes through. */
  lanes: number[];
  children: ComponentChildren;
}

export function LaneTools({ recording, lanes, children }: Props) {
  const hasVcpus = vcpuLanes(recording.timeline).length > 0;
  const hasChains = recording.timeline!.lanes.some((lane) => lane.chains > 0);
  return (
    <div class="lane-tools">
      <input
        type="text"
        value={hash.value.lanes ?? ""}
        placeholder="Lanes: CPU 3"
        aria-label="Filter lanes by words"
        onInput={(event) => go({ lanes: event.currentTarget.value })}
      />
      {hasVcpus && (
        <select
          aria-label="Order of lanes"
          value={hash.value.order ?? ""}
          onChange={(event) => go({ order: event.currentTarget.value })}
        >
          <option value="">Lanes as recorded</option>
          {ORDERS.filter(({ id }) => id !== "chains" || hasChains).map(({ id, title }) => (
            <option key={id} value={id}>
              {title}
            </option>
          ))}
        </select>
      )}
      <Search recording={recording} lanes={lanes} />
      {children}
    </div>
  );
}

function Search({ recording, lanes }: { recording: Recording; lanes: number[] }) {
  const word = hash.value.find ?? "";
  // What was said of another word, or of other lanes, is not said of these.
  const about = `${word}\t${listOf(lanes)}`;
  const [said, setAll] = useState({ about, words: "" });
  const setSaid = (words: string) => setAll({ about, words });
  const step = async (by: 1 | -1) => {
    const q = word.trim();
    if (!q || lanes.length === 0) return setSaid("");
    const from = pickOf(hash.value);
    const at = from ?? { ns: shown.value.t0 };
    try {
      const found = await recording.search({
        q,
        lanes,
        at: at.ns,
        ...(from && lanes.includes(from.lane) ? { lane: from.lane } : {}),
      });
      const hit = by > 0 ? found.after : found.before;
      const where = recording.inlined ? " in the slices that this file contains" : "";
      if (!hit) {
        const none =
          found.count === 0 ? "none" : `no ${by > 0 ? "later" : "earlier"} one of ${grouped(found.count)}`;
        return setSaid(none + where);
      }
      const nth = by > 0 ? found.count - found.later + 1 : found.earlier;
      setSaid(`${grouped(nth)} of ${grouped(found.count)}${where}`);
      show(showing(shown.value, hit.from_ns, whole.value));
      pick({ lane: hit.lane, ns: hit.from_ns });
      selected.value = { t0: hit.from_ns, t1: hit.to_ns };
    } catch (error) {
      setSaid((error as Error).message);
    }
  };
  return (
    <span class="search">
      <input
        type="search"
        value={word}
        placeholder="Find: MSR"
        aria-label={`Find slices by reason or state in ${counted(lanes.length, "lane")}`}
        onInput={(event) => go({ find: event.currentTarget.value })}
        onKeyDown={(event) => {
          if (event.key === "Enter") void step(event.shiftKey ? -1 : 1);
        }}
      />
      <button
        type="button"
        disabled={word.trim() === ""}
        aria-label="Previous hit"
        onClick={() => void step(-1)}
      >
        ↑
      </button>
      <button type="button" disabled={word.trim() === ""} aria-label="Next hit" onClick={() => void step(1)}>
        ↓
      </button>
      <span class="soft" role="status">
        {said.about === about ? said.words : ""}
      </span>
    </span>
  );
}
