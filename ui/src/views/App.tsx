/** The page: what is open at the top, the views at the side, one view in the middle. */
import type { ComponentChildren, FunctionComponent } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { answering, returned, silent } from "../data/silence";
import type { Recording } from "../data/source";
import type { FigureData } from "../data/types";
import { emulation } from "../maths/emulated";
import { nameOf } from "../maths/format";
import { failure, go, helpOpen, notice, other, otherFailure, part, recording, theme } from "../state/store";
import { COMPARED, isView, sectionOf, titleOfView, viewsOf } from "../state/views";
import type { useControls } from "./Controls";
import { Exits } from "./Exits";
import { Findings } from "./Findings";
import { Help } from "./Help";
import { Overview } from "./Overview";
import { Patterns } from "./Patterns";
import { Sections } from "./Sections";
import type { OfServer as OfTimeline } from "./Timeline";

/** Views that need not be there at once, and what draws figures. */
export interface Views {
  Chains: FunctionComponent<{ recording: Recording; other: Recording | null }>;
  Costs: FunctionComponent<{ recording: Recording }>;
  Drawing: FunctionComponent<{ section: string; figure: FigureData }>;
  Flame: FunctionComponent<{ recording: Recording }>;
  Gauges: FunctionComponent<{ recording: Recording }>;
  Multiplication: FunctionComponent<{ recording: Recording }>;
  TimelineView: FunctionComponent<{ recording: Recording; ofServer?: OfTimeline }>;
}

export interface OfServer extends OfTimeline {
  Chooser: FunctionComponent<{ open: Recording }>;
  Compared: FunctionComponent<{
    recording: Recording;
    other: Recording;
    id: string;
    children: ComponentChildren;
  }>;
  Comparison: FunctionComponent;
  Events: FunctionComponent<{ recording: Recording }>;
  Home: FunctionComponent;
  Live: FunctionComponent<{ id: string }>;
  Reading: FunctionComponent<{ id: string }>;
  Recordings: FunctionComponent;
  useControls: typeof useControls;
}

interface Props {
  views: Views;
  ofServer?: OfServer;
}

export function App({ views, ofServer }: Props) {
  const open = recording.value;
  const wall = part("wall") === "1";
  const [id, live, view] = [part("r"), part("live"), part("view") ?? "findings"];
  const hasSecond = Boolean(part("b"));
  const title = titleOf(open);
  useEffect(() => {
    document.title = title;
  }, [title]);
  useEffect(() => {
    // What is shown and what the address says are the same.
    if (open && !isView(open, view, hasSecond)) go({ view: null });
  }, [open, view, hasSecond]);
  const heading = useRef<HTMLHeadingElement>(null);
  useFocusOnOpening(open, heading);
  return (
    <div class={wall ? "app wall" : "app"}>
      <Patterns />
      <Skip to="#main" words="Skip to the view" />
      {open?.timeline && view === "timeline" && <Skip to=".lane-canvas .above" words="Skip to the lanes" />}
      <Top {...(ofServer ? { ofServer } : {})} />
      {open && !live && <Tabs recording={open} />}
      <main id="main" tabIndex={-1}>
        {live && ofServer ? (
          <ofServer.Live id={live} />
        ) : failure.value ? (
          <div class="empty" role="alert">
            <h2>{id ? `${id} cannot be opened` : "The list of recordings cannot be read"}</h2>
            <p>{failure.value}</p>
            {id && (
              <p>
                <button type="button" onClick={() => go({ r: null }, true)}>
                  All recordings
                </button>
              </p>
            )}
          </div>
        ) : open ? (
          <>
            <h1 class="hidden" tabIndex={-1} ref={heading}>
              {openTitle(open)} of {nameOf(open)}
            </h1>
            {/* What a server did not give while it was silent, a view asks for once it is drawn anew. */}
            {open.timeline && (
              <Overview key={`strip${returned.value}`} recording={open} fixed={view === "findings"} />
            )}
            {ofServer && <ofServer.Comparison />}
            <View
              key={`view${returned.value}`}
              recording={open}
              views={views}
              id={view}
              {...(ofServer ? { ofServer } : {})}
            />
          </>
        ) : (
          ofServer && (id ? <ofServer.Reading id={id} /> : <ofServer.Recordings />)
        )}
      </main>
      {helpOpen.value && <Help />}
      {silent.value && !live && (
        <p class="notice lost" role="alert">
          The server does not answer. It is asked again every two seconds.{" "}
          <button type="button" onClick={() => void answering()}>
            Ask now
          </button>
        </p>
      )}
      <p class="notice" role="status">
        {notice.value}
      </p>
    </div>
  );
}

/** Past what stands before it, for who has no pointer. */
function Skip({ to, words }: { to: string; words: string }) {
  return (
    <a
      class="skip"
      href="#main"
      onClick={(event) => {
        event.preventDefault();
        document.querySelector<HTMLElement>(to)?.focus();
      }}
    >
      {words}
    </a>
  );
}

/** The card or the list that a recording was opened by is gone then: the keyboard goes on from its heading. */
function useFocusOnOpening(open: Recording | null, heading: { current: HTMLElement | null }): void {
  // A page that begins with a recording begins at its top.
  const isFirst = useRef(Boolean(part("r")));
  useEffect(() => {
    if (!open) return;
    if (!isFirst.current && document.activeElement === document.body)
      heading.current?.focus({ preventScroll: true });
    isFirst.current = false;
  }, [open]);
}

function Top({ ofServer }: { ofServer?: OfServer }) {
  const open = recording.value;
  // Times of an emulated machine are never shown without this.
  const emulated = emulation(open?.report) || emulation(other.value?.report);
  return (
    <header class="top">
      {ofServer ? <ofServer.Home /> : <span class="brand">kvmscope</span>}
      {open && !ofServer && <span class="path">{nameOf(open)}</span>}
      {open && ofServer && <ofServer.Chooser open={open} />}
      {emulated && (
        <span class="emulated" title="Counts and order are real, times are not.">
          {emulated}
        </span>
      )}
      {open && (
        <b class="printed">
          {nameOf(open)} · {titleOfView(open, part("view") ?? "findings")}
        </b>
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

/** Whether a second recording is open, or being opened. */
function isCompared(): boolean {
  return Boolean(part("b")) && !otherFailure.value;
}

/** Without a second recording there is nothing compared. */
function openTitle(open: Recording): string {
  const id = part("view") ?? "findings";
  return isCompared() && id === COMPARED.id ? COMPARED.title : titleOfView(open, id);
}

/** Of the browser's tab: several recordings are often open side by side. */
function titleOf(open: Recording | null): string {
  const live = part("live");
  if (live) return `${live}, live - kvmscope`;
  const second = isCompared() && other.value ? ` and ${nameOf(other.value)}` : "";
  return open ? `${nameOf(open)}${second}: ${openTitle(open)} - kvmscope` : "kvmscope";
}

function Tabs({ recording }: { recording: Recording }) {
  const compared = isCompared();
  const asked = part("view") ?? "findings";
  const current = asked === COMPARED.id && !compared ? "findings" : asked;
  const nav = useRef<HTMLElement>(null);
  useEffect(() => {
    // On a narrow screen they are a row that scrolls.
    nav.current?.querySelector("[aria-current]")?.scrollIntoView({ inline: "center", block: "nearest" });
  }, [current]);
  return (
    <nav class="views" aria-label="Views" ref={nav}>
      {[...(compared ? [COMPARED] : []), ...viewsOf(recording)].map((view, i) => (
        <a
          key={view.id}
          href={`#view=${view.id}`}
          aria-current={view.id === current ? "page" : undefined}
          onClick={(event) => {
            event.preventDefault();
            go({ view: view.id }, true);
          }}
        >
          <Key place={compared ? i - 1 : i} /> {view.title}
        </a>
      ))}
    </nav>
  );
}

/** The number key of a view, where it has one. */
function Key({ place }: { place: number }) {
  return place >= 0 && place < 9 ? <kbd>{place + 1}</kbd> : null;
}

interface Shown {
  recording: Recording;
  id: string;
  views: Views;
  ofServer?: OfServer;
}

function View({ recording, id, views, ofServer }: Shown) {
  const alone = <Alone recording={recording} id={id} views={views} {...(ofServer ? { ofServer } : {})} />;
  // Comparison says that it is being read.
  if (id === COMPARED.id && isCompared() && !other.value) return null;
  if (!other.value || !ofServer) return alone;
  return (
    <ofServer.Compared recording={recording} other={other.value} id={id}>
      {alone}
    </ofServer.Compared>
  );
}

function Alone({ recording, id, views, ofServer }: Shown) {
  const own = sectionOf(id);
  const served = ofServer ? { ofServer } : {};
  if (own) return <Sections recording={recording} only={own} Drawing={views.Drawing} {...served} />;
  switch (id) {
    case "timeline":
      return <views.TimelineView recording={recording} {...served} />;
    case "exits":
      return <Exits recording={recording} />;
    case "chains":
      return <views.Chains recording={recording} other={other.value} />;
    case "costs":
      return <views.Costs recording={recording} />;
    case "flame":
      return <views.Flame recording={recording} />;
    case "multiplication":
      return <views.Multiplication recording={recording} />;
    case "gauges":
      return <views.Gauges recording={recording} />;
    case "sections":
      return <Sections recording={recording} Drawing={views.Drawing} {...served} />;
    default:
      return <Findings recording={recording} Drawing={views.Drawing} />;
  }
}
