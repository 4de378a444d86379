/** A Section's figure, by its kind: bars, points on a scale, curves, cells, a machine, ways, gauges, stretches, levels, steps, pairs. */
import type { FigureData } from "../data/types";
import { Bars } from "./Bars";
import { Bins } from "./Bins";
import { Curves } from "./Curves";
import { Drawn } from "./Drawn";
import { Dumbbells } from "./Dumbbells";
import { Flows } from "./Flows";
import { Heat } from "./Heat";
import { Levels } from "./Levels";
import { Matrix } from "./Matrix";
import { Points } from "./Points";
import { RateGauges } from "./RateGauges";
import { Keys, Spans } from "./Spans";
import { Topology } from "./Topology";
import { Waterfalls } from "./Waterfall";

export function Drawing({ section, figure }: { section: string; figure: FigureData }) {
  return (
    <Drawn section={section} figure={figure}>
      <Kind figure={figure} />
    </Drawn>
  );
}

function Kind({ figure }: { figure: FigureData }) {
  switch (figure.drawing) {
    case "bars":
      return <Bars groups={figure.groups} />;
    case "points":
      return <Points groups={figure.scales} />;
    case "histogram":
      return <Bins title={figure.title} drawn={figure} />;
    case "curves":
      return <Curves title={figure.title} drawn={figure} />;
    case "heat":
      return <Heat title={figure.title} drawn={figure} />;
    case "topology":
      return <Topology title={figure.title} panels={figure.panels} />;
    case "flows":
      return <Flows flows={figure.flows} />;
    case "spans":
      return (
        <>
          <Spans groups={figure.spans} />
          <Keys keys={figure.keys} />
        </>
      );
    case "levels":
      return <Levels title={figure.title} levels={figure} />;
    case "waterfall":
      return <Waterfalls wholes={figure.wholes} />;
    case "matrix":
      return <Matrix matrix={figure} />;
    case "dumbbells":
      return <Dumbbells groups={figure.dumbbells} looks={figure.looks} />;
    case "gauges":
      return <RateGauges groups={figure.dials} />;
    default:
      return <Unknown drawing={figure} />;
  }
}

/** A report may be newer than the page that shows it; of the drawings that this page knows, none is left. */
function Unknown({ drawing }: { drawing: never }) {
  const { drawing: name } = drawing as { drawing: string };
  return <p class="soft">This page does not know how to draw "{name}"; a newer kvmscope does.</p>;
}
