/** The first page: what the served folder holds. */
import { bytes } from "../maths/format";
import { go, recordings } from "../state/store";
import { Empty } from "./Figure";

export function Recordings() {
  const list = recordings.value;
  if (!list)
    return (
      <p class="loading" role="status">
        Looking for recordings …
      </p>
    );
  if (list.length === 0) {
    return (
      <Empty title="No recording in this folder">
        <code>kvmscope record -o NAME -- COMMAND</code> makes one; start <code>kvmscope serve</code> on the
        folder that holds it.
      </Empty>
    );
  }
  return (
    <section class="recordings">
      <h1>Recordings</h1>
      <ul>
        {list.map((it) => (
          <li key={it.id}>
            <a
              href={`#${it.live ? "live" : "r"}=${encodeURIComponent(it.id)}`}
              onClick={(event) => {
                event.preventDefault();
                go(it.live ? { live: it.id } : { r: it.id }, true);
              }}
            >
              <strong>{it.title}</strong>
              <span>{it.levels.length > 0 ? `recorded at ${it.levels.join(", ")}` : ""}</span>
              <span>{[it.created, it.bytes > 0 ? bytes(it.bytes) : null].filter(Boolean).join(", ")}</span>
              {it.live && <span class="pulse live">being recorded now: watch its gauges</span>}
              {it.emulated && <span class="emulated">emulated: times are not real</span>}
            </a>
          </li>
        ))}
      </ul>
    </section>
  );
}
