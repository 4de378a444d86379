/** The events themselves, a page at a time. */
import { useState } from "preact/hooks";
import type { Recording } from "../data/source";
import { grouped, instant } from "../maths/format";
import { csv } from "../maths/rows";
import { Figure } from "./Figure";
import { LongTable } from "./TableBox";
import { useAnswer } from "./useAnswer";

const ROWS = 100;

export function Events({ recording }: { recording: Recording }) {
  const [offset, setOffset] = useState(0);
  const { value, error, loading } = useAnswer(() => recording.events(offset, ROWS), [recording, offset]);
  if (error) return <p class="error">{error}</p>;
  if (!value) {
    return <p class="soft">{loading ? "Reading events …" : "There are no events."}</p>;
  }
  const last = offset + value.events.length;
  // A page that is not full is the last, and then the total is known.
  const more = value.total === null || last < value.total;
  const columns = ["time_ns", "cpu", "tid", "name", "fields"] as const;
  return (
    <Figure
      id="events-list"
      title="Events as recorded"
      picture={false}
      csv={() =>
        csv(
          [...columns],
          value.events.map((event) => columns.map((column) => event[column])),
        )
      }
      tools={
        <>
          <button type="button" disabled={offset === 0} onClick={() => setOffset(Math.max(0, offset - ROWS))}>
            earlier
          </button>
          <button type="button" disabled={!more} onClick={() => setOffset(offset + ROWS)}>
            later
          </button>
        </>
      }
      caption={
        value.total === 0
          ? "No event can be read."
          : `Events ${grouped(offset + 1)} to ${grouped(last)} of ${value.total === null ? "a total that is still being counted" : grouped(value.total)}, with the kernel's names and fields.`
      }
    >
      <LongTable
        title="Events"
        count={value.events.length}
        head={
          <tr>
            <th class="number">time</th>
            <th class="number">CPU</th>
            <th class="number">tid</th>
            <th>event</th>
            <th>fields</th>
          </tr>
        }
        row={(i) => {
          const { time_ns, cpu, tid, name, fields } = value.events[i]!;
          return (
            <tr key={`${offset + i}`}>
              <td class="number">{instant(time_ns, 1)}</td>
              <td class="number">{cpu}</td>
              <td class="number">{tid}</td>
              <td>
                <b>{name}</b>
              </td>
              <td>{fields}</td>
            </tr>
          );
        }}
      />
    </Figure>
  );
}
