/** The page: what is open at the top, the views at the side, one view in the middle. */
import type { FunctionComponent } from "preact";
import { useEffect, useRef } from "preact/hooks";
import type { Recording } from "../data/source";
import {
  failure,
  go,
  hash,
  helpOpen,
  notice,
  other,
  otherFailure,
  recording,
  recordings,
  theme,
} from "../state/store";
import { VIEWS, type ViewId } from "../state/views";
import { Chains } from "./Chains";
import type { useControls } from "./Controls";
import { Costs } from "./Costs";
import { Exits } from "./Exits";
import { Findings } from "./Findings";
import { Flame } from "./Flame";
import { Gauges } from "./Gauges";
import { Help } from "./Help";
import { Multiplication } from "./Multiplication";
import { Overview } from "./Overview";
import { Patterns } from "./Patterns";
import { Sections } from "./Sections";
import { type OfServer as OfTimeline, TimelineView } from "./Timeline";

export interface OfServer extends OfTimeline {
  Events: FunctionComponent<{ recording: Recording }>;
  Live: FunctionComponent<{ id: string }>;
  Recordings: FunctionComponent;
  useControls: typeof useControls;
}

export function App({ inlined, ofServer }: { inlined: boolean; ofServer?: OfServer }) {
  const open = recording.value;
  const wall = hash.value.wall === "1";
  const title = titleOf(open);
  useEffect(() => {
    document.title = title;
  }, [title]);
  return (
    <div class={wall ? "app wall" : "app"}>
      <Patterns />
      <a
        class="skip"
        href="#main"
        onClick={(event) => {
          event.preventDefault();
          document.getElementById("main")?.focus();
        }}
      >
        Skip to the view
      </a>
      <Top inlined={inlined} />
      {open && !hash.value.live && <Views />}
      <main id="main" tabIndex={-1}>
        {hash.value.live && ofServer ? (
          <ofServer.Live id={hash.value.live} />
        ) : failure.value ? (
          <div class="empty" role="alert">
            <h2>
              {hash.value.r ? `${hash.value.r} cannot be opened` : "The list of recordings cannot be read"}
            </h2>
            <p>{failure.value}</p>
            {hash.value.r && (
              <p>
                <button type="button" onClick={() => go({ r: null }, true)}>
                  All recordings
                </button>
              </p>
            )}
          </div>
        ) : open ? (
          <>
            <h1 class="hidden">
              {VIEWS.find((view) => view.id === hash.value.view)?.title ?? "Findings"} of {nameOf(open)}
            </h1>
            {open.timeline && (
              <Overview recording={open} fixed={(hash.value.view ?? "findings") === "findings"} />
            )}
            <Comparison />
            <View
              recording={open}
              id={(hash.value.view ?? "findings") as ViewId}
              {...(ofServer ? { ofServer } : {})}
            />
          </>
        ) : hash.value.r ? (
          <p class="loading" role="status">
            Reading {hash.value.r} …
          </p>
        ) : (
          ofServer && <ofServer.Recordings />
        )}
      </main>
      {helpOpen.value && <Help />}
      <p class="notice" role="status">
        {notice.value}
      </p>
    </div>
  );
}

function Top({ inlined }: { inlined: boolean }) {
  const open = recording.value;
  const list = recordings.value ?? [];
  return (
    <header class="top">
      {inlined ? (
        <span class="brand">kvmscope</span>
      ) : (
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
      )}
      {open && !inlined && (
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
                  pin: null,
                },
                true,
              )
            }
          >
            {list.map((it) => (
              <option key={it.id} value={it.id} disabled={it.problem !== null}>
                {it.title}
              </option>
            ))}
          </select>
        </label>
      )}
      {open && inlined && <span class="path">{nameOf(open)}</span>}
      {open && list.length > 1 && (
        <label>
          <span class="label">Compare with</span>
          <select
            value={hash.value.b ?? ""}
            onChange={(event) => go({ b: event.currentTarget.value, chain2: null }, true)}
          >
            <option value="">compare with …</option>
            {list
              .filter((it) => it.id !== open.id && it.problem === null)
              .map((it) => (
                <option key={it.id} value={it.id}>
                  {it.title}
                </option>
              ))}
          </select>
        </label>
      )}
      {(open?.report.recording.emulated ?? other.value?.report.recording.emulated) && (
        <Emulated by={(open?.report.recording.emulated ?? other.value?.report.recording.emulated)!} />
      )}
      <span class="space" />
      <button type="button" onClick={() => go({ theme: theme.value === "dark" ? "light" : "dark" })}>
        {theme.value === "dark" ? "Light" : "Dark"}
      </button>
      <button
        type="button"
        aria-label="Help: keys and mouse"
        onClick={() => {
          helpOpen.value = true;
        }}
      >
        ?
      </button>
    </header>
  );
}

/** The last part of the recording's path: whoever made a report file does not send the names of their directories. */
function nameOf(open: Recording): string {
  return open.report.recording.path.split("/").filter(Boolean).at(-1) ?? "recording";
}

/** Of the browser's tab: several recordings are often open side by side. */
function titleOf(open: Recording | null): string {
  if (hash.value.live) return `${hash.value.live}, live - kvmscope`;
  const view = VIEWS.find((view) => view.id === hash.value.view)?.title ?? "Findings";
  return open ? `${nameOf(open)}: ${view} - kvmscope` : "kvmscope";
}

/** Views that show both recordings. */
const COMPARING = ["exits", "chains"];

/** What is shown of the second recording, where the view does not show it. */
function Comparison() {
  const id = hash.value.b;
  const view = hash.value.view ?? "findings";
  if (!id) return null;
  const note = otherFailure.value
    ? `${id} could not be opened, so nothing is compared: ${otherFailure.value}`
    : COMPARING.includes(view)
      ? ""
      : `This view shows ${hash.value.r} only; Exits and Chains compare it with ${id}.`;
  if (!note) return null;
  return (
    <p class="note" role="status">
      {note}{" "}
      <button type="button" onClick={() => go({ b: null, chain2: null })}>
        Close the comparison
      </button>
    </p>
  );
}

/** Times of an emulated machine are never shown without this. */
function Emulated({ by }: { by: string }) {
  const name = by === "bochs" ? "Bochs" : by === "tcg" ? "QEMU TCG" : by;
  return (
    <span class="emulated" title="Counts and order are real, times are not.">
      Emulated ({name}): times are not real
    </span>
  );
}

function Views() {
  const current = hash.value.view ?? "findings";
  const nav = useRef<HTMLElement>(null);
  useEffect(() => {
    // On a narrow screen they are a row that scrolls.
    nav.current?.querySelector("[aria-current]")?.scrollIntoView({ inline: "center", block: "nearest" });
  }, [current]);
  return (
    <nav class="views" aria-label="Views" ref={nav}>
      {VIEWS.map((view, i) => (
        <a
          key={view.id}
          href={`#view=${view.id}`}
          aria-current={view.id === current ? "page" : undefined}
          onClick={(event) => {
            event.preventDefault();
            go({ view: view.id }, true);
          }}
        >
          <kbd>{i + 1}</kbd> {view.title}
        </a>
      ))}
    </nav>
  );
}

function View({ recording, id, ofServer }: { recording: Recording; id: ViewId; ofServer?: OfServer }) {
  switch (id) {
    case "timeline":
      return <TimelineView recording={recording} {...(ofServer ? { ofServer } : {})} />;
    case "exits":
      return <Exits recording={recording} other={other.value} />;
    case "chains":
      return <Chains recording={recording} other={other.value} />;
    case "costs":
      return <Costs recording={recording} />;
    case "flame":
      return <Flame recording={recording} />;
    case "multiplication":
      return <Multiplication recording={recording} />;
    case "gauges":
      return <Gauges recording={recording} />;
    case "sections":
      return <Sections recording={recording} {...(ofServer ? { ofServer } : {})} />;
    default:
      return <Findings recording={recording} />;
  }
}
