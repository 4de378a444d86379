/** What a view shows of two recordings, and the sentence where it shows one. */
import "../../style/compared.css";
import type { ComponentChildren } from "preact";
import type { Recording } from "../../data/source";
import { BothCosts } from "./BothCosts";
import { BothFindings } from "./BothFindings";
import { BothFlames } from "./BothFlames";
import { BothMultiplications } from "./BothMultiplications";
import { BothTimelines } from "./BothTimelines";
import { Changes } from "./Changes";
import { Story } from "./Story";

interface Props {
  recording: Recording;
  other: Recording;
  id: string;
  /** The view of the first recording alone. */
  children: ComponentChildren;
}

export function Compared({ recording: before, other: after, id, children }: Props) {
  const sides = { before, after };
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
