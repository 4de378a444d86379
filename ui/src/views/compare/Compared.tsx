/** What a view shows of two recordings, and the sentence where it shows one. */
import "../../style/compared.css";
import type { ComponentChildren } from "preact";
import type { Recording } from "../../data/source";
import { COMPARED } from "../../state/views";
import { Empty } from "../Figure";
import { BothCosts } from "./BothCosts";
import { BothFindings } from "./BothFindings";
import { BothFlames } from "./BothFlames";
import { BothMultiplications } from "./BothMultiplications";
import { BothTimelines } from "./BothTimelines";
import { Changes } from "./Changes";
import { Story } from "./Story";
import { sectionOf, useCompared } from "./useCompared";

interface Props {
  recording: Recording;
  other: Recording;
  id: string;
  /** The view of the first recording alone. */
  children: ComponentChildren;
}

export function Compared(props: Props) {
  const { recording, other } = props;
  if (recording.id === other.id)
    return <Apart {...props} why={`${recording.id} is compared with itself, so nothing can differ.`} />;
  return <Both {...props} />;
}

/** What cannot be compared is said above every view, and what was opened first stays. */
function Apart({ recording, id, children, why }: Props & { why: string }) {
  if (id === COMPARED.id) return <Empty title="These two cannot be compared">{why}</Empty>;
  return (
    <>
      <p class="error apart" role="status">
        {why} Below is {recording.id} alone.
      </p>
      {children}
    </>
  );
}

function Both(props: Props) {
  const { recording: before, other: after, id, children } = props;
  const sides = { before, after };
  const { value, error, loading } = useCompared(before, after);
  if (error) return <Apart {...props} why={sentence(error)} />;
  if (value && !sectionOf(value))
    return <Apart {...props} why="The recordings have nothing in common that was measured." />;
  // Nothing is called gone before it is known that the two can be compared.
  if (loading && id === "findings") {
    return (
      <p class="loading" role="status">
        Comparing {before.id} with {after.id} …
      </p>
    );
  }
  /** Whose pictures say that they are of both. */
  const ofBoth = (view: ComponentChildren) => (
    <div class="of-both" data-both>
      {view}
    </div>
  );
  /** Both, and below what the view shows of the first one. */
  const above = (both: ComponentChildren, what: string) => (
    <>
      {ofBoth(both)}
      <h2 class="heading">
        {what} of {before.id} alone
      </h2>
      {children}
    </>
  );
  switch (id) {
    case "compared":
      return ofBoth(<Story {...sides} />);
    case "exits":
      return ofBoth(<Changes {...sides} />);
    case "chains":
      return <>{children}</>;
    case "findings":
      return above(<BothFindings {...sides} />, "Findings");
    case "timeline":
      return above(<BothTimelines {...sides} />, "Timeline");
    case "flame":
      return above(<BothFlames {...sides} />, "Flame");
    case "costs":
      return above(<BothCosts {...sides} />, "Costs");
    case "multiplication":
      return above(<BothMultiplications {...sides} />, "Multiplication");
    default:
      return (
        <>
          <p class="note" role="status">
            {id === "gauges"
              ? `Gauges show one instant, and an instant of ${before.id} has no counterpart in ${after.id}: this view shows ${before.id} only. Timeline compares both over time.`
              : `This view shows ${before.id} only; the tables of both are in Compared.`}
          </p>
          {children}
        </>
      );
  }
}

/** The server's reasons are parts of sentences. */
function sentence(words: string): string {
  return `${words.charAt(0).toUpperCase()}${words.slice(1)}${/[.?!]$/.test(words) ? "" : "."}`;
}
