/** At the top: which of the server's recordings is open, and which one it is compared with. */
import type { Recording } from "../data/source";
import { go, hash, part, problemOf, recordings } from "../state/store";
import { COMPARED } from "../state/views";

export function Chooser({ open }: { open: Recording }) {
  const list = recordings.value ?? [];
  return (
    <>
      <label>
        <span class="label">Recording</span>
        <select
          value={open.id}
          onChange={(event) =>
            go(
              {
                r: event.currentTarget.value,
                t0: null,
                t1: null,
                chain: null,
                chain2: null,
                lane: null,
                pick: null,
                area: null,
                mark: null,
                pin: null,
              },
              true,
            )
          }
        >
          {list.map((it) => (
            <option key={it.id} value={it.id} disabled={problemOf(it) !== null}>
              {it.title}
            </option>
          ))}
        </select>
      </label>
      {list.length > 1 && (
        <label>
          <span class="label">Compare with</span>
          <select
            value={part("b") ?? ""}
            onChange={(event) => {
              const b = event.currentTarget.value;
              go({ b, chain2: null, view: b ? COMPARED.id : hash.value.view }, true);
            }}
          >
            <option value="">compare with …</option>
            {list
              .filter((it) => it.id !== open.id && problemOf(it) === null)
              .map((it) => (
                <option key={it.id} value={it.id}>
                  {it.title}
                </option>
              ))}
          </select>
        </label>
      )}
    </>
  );
}

/** Leads back to the list of all recordings. */
export function Home() {
  return (
    <a
      class="brand"
      href="#"
      onClick={(event) => {
        event.preventDefault();
        go(
          {
            r: null,
            b: null,
            view: null,
            t0: null,
            t1: null,
            chain: null,
            chain2: null,
            lane: null,
            q: null,
            live: null,
            wall: null,
          },
          true,
        );
      }}
    >
      kvmscope
    </a>
  );
}
