/** The first page: what the served folder contains, how long each recording is, and what is worst in it. */
import { silent } from "../data/silence";
import type { Brief, RecordingInfo } from "../data/types";
import { bytes, counted, duration, minute, percent } from "../maths/format";
import { arranged, ORDERS } from "../maths/recordings";
import { briefs, go, hash, listing, problemOf, recordings } from "../state/store";
import { Empty } from "./Figure";
import { MARKS } from "./severity";
import { Filter } from "./TableBox";

/** So many are seen at once. */
const FEW = 6;

/** What a person looks through. */
const MOST_LEFT_OUT = 200;

export function Recordings() {
  const list = recordings.value;
  if (!list)
    return (
      <p class="loading" role="status">
        Reading the list of recordings …
      </p>
    );
  if (list.length === 0) {
    return (
      <>
        <Empty title="No recordings in this folder">
          Run <code>kvmscope record -o NAME</code> on a host to make one, then start{" "}
          <code>kvmscope serve</code> on the folder that contains it.
        </Empty>
        <LeftOut />
      </>
    );
  }
  const all = list.filter((it) => problemOf(it) === null);
  const unreadable = list.filter((it) => problemOf(it) !== null);
  const order = ORDERS.find(({ id }) => id === hash.value.sort) ?? ORDERS[0]!;
  const readable = arranged(all, briefs.value, order, hash.value.q ?? "");
  return (
    <section class="recordings">
      <header>
        <h1>Recordings</h1>
        {all.length > FEW && (
          <>
            <Filter example="preempted" />
            <label>
              <span class="label">Order</span>
              <select
                value={order.id}
                onChange={(event) =>
                  go({ sort: event.currentTarget.value === ORDERS[0]!.id ? null : event.currentTarget.value })
                }
              >
                {ORDERS.map(({ id, title }) => (
                  <option key={id} value={id}>
                    {title}
                  </option>
                ))}
              </select>
            </label>
          </>
        )}
      </header>
      <ul>
        {readable.map((it) => (
          <li key={it.id}>
            <Card info={it} brief={briefs.value.get(it.id)} />
          </li>
        ))}
      </ul>
      {readable.length < all.length && (
        <p class="soft">
          {readable.length} of {counted(all.length, "recording")}, filtered by "{hash.value.q}".
        </p>
      )}
      {unreadable.length > 0 && <Unreadable list={unreadable} />}
      <LeftOut />
    </section>
  );
}

/** `brief`: undefined while it was not read, null where it is not read for the list. */
function Card({ info, brief }: { info: RecordingInfo; brief: Brief | null | undefined }) {
  const about = [
    info.recordings ? `a data set of ${counted(info.recordings, "recording")}` : "",
    brief && brief.duration_ns !== null ? duration(brief.duration_ns) : "",
    info.levels.length > 0 ? `recorded at ${info.levels.join(", ")}` : "",
  ];
  const file = [info.created ? minute(info.created) : "", info.bytes > 0 ? bytes(info.bytes) : ""];
  return (
    <a
      href={`#${info.live ? "live" : "r"}=${encodeURIComponent(info.id)}`}
      onClick={(event) => {
        event.preventDefault();
        go(info.live ? { live: info.id } : { r: info.id, q: null, sort: null }, true);
      }}
    >
      <strong>{info.title}</strong>
      {brief && <Thumbnail brief={brief} />}
      {brief?.answer && <span class="said">{brief.answer}</span>}
      <span>{about.filter(Boolean).join(", ")}</span>
      <span>{file.filter(Boolean).join(", ")}</span>
      {info.live ? (
        <span class="pulse live">being recorded now: watch its gauges</span>
      ) : (
        <Worst brief={brief} />
      )}
      {info.emulated && <span class="emulated">emulated: times are not real</span>}
      {brief?.emulated && <span class="emulated">{brief.emulated} emulated: their times are not real</span>}
    </a>
  );
}

/** All vCPU time as one bar. */
function Thumbnail({ brief: { time } }: { brief: Brief }) {
  if (time.length === 0) return null;
  let along = 0;
  return (
    <svg class="thumbnail" viewBox="0 0 100 8" preserveAspectRatio="none" role="img" aria-label={words(time)}>
      <title>{words(time)}</title>
      {time.map(({ label, hue, share }) => {
        const x = along;
        along += 100 * share;
        return <rect key={label} x={x} width={100 * share} height="8" fill={`var(--state-${hue})`} />;
      })}
    </svg>
  );
}

function words(time: Brief["time"]): string {
  return time.map(({ label, share }) => `${label} ${percent(share)}`).join(", ");
}

/** The worst finding in a line, and how many others there are. */
function Worst({ brief }: { brief: Brief | null | undefined }) {
  // That the server does not answer is said once, for all of them.
  if (brief === undefined) return silent.value ? null : <span>reading its findings …</span>;
  if (brief === null) return <span>no summary: open it</span>;
  const { worst, findings, duration_ns } = brief;
  // Without a vCPU no rule about exits could be checked: no findings would look like a result.
  if (!worst) return <span>{duration_ns === null ? "" : "no findings"}</span>;
  return (
    <>
      <span class={`worst ${worst.severity}`}>
        <i aria-hidden="true">{MARKS[worst.severity]}</i> {worst.severity}: {worst.title}
      </span>
      {findings > 1 && <span>and {counted(findings - 1, "more finding")}</span>}
    </>
  );
}

/** Recordings that the server cannot read, with the reason and what to do. */
function Unreadable({ list }: { list: RecordingInfo[] }) {
  return (
    <>
      <h2 class="heading">{counted(list.length, "recording")} cannot be read</h2>
      <ul class="unreadable">
        {list.map((it) => (
          <li key={it.id}>
            <strong>{it.title}</strong>
            <p>{problemOf(it)}</p>
            <p class="soft">{remedy(it)}</p>
          </li>
        ))}
      </ul>
    </>
  );
}

/** What lies in the folder and is no recording, so that nobody looks for it in the list. */
function LeftOut() {
  const list = listing.value?.left_out ?? [];
  if (list.length === 0) return null;
  return (
    <details class="soft">
      <summary>
        Left out ({list.length}): no recordings that the server reads; <code>kvmscope report</code> may read
        them
      </summary>
      <ul>
        {list.slice(0, MOST_LEFT_OUT).map(({ path, why }) => (
          <li key={path}>
            {path}: {why}
          </li>
        ))}
      </ul>
      {list.length > MOST_LEFT_OUT && <p>And {list.length - MOST_LEFT_OUT} more.</p>}
    </details>
  );
}

/** A packed recording and a trace are files, which are copied again; a manifest is edited. */
function remedy({ id, problem }: RecordingInfo): string {
  const fix = id.endsWith(".kvmscope")
    ? "Copy the file again from where it was packed, or pack the recording again with kvmscope pack."
    : problem === null
      ? "Its trace is damaged, or not one that kvmscope reads: copy it again from where it was recorded."
      : "Correct its recording.json. If a newer kvmscope wrote it, serve the folder with that version.";
  return `${fix} Then reload this page.`;
}
