/** The dashboard's entry: recordings come from the server that sent this page. */
import { server } from "./data/server";
import { mount } from "./mount";
import { serve } from "./state/serving";
import { Chooser, Home } from "./views/Chooser";
import { Comparison } from "./views/Comparison";
import { useControls } from "./views/Controls";
import { Drawing } from "./views/Drawing";
import { Events } from "./views/Events";
import { later } from "./views/Later";
import { Reading } from "./views/Reading";
import { Recordings } from "./views/Recordings";
import { Arrows } from "./views/timeline/Arrows";
import { useArrows } from "./views/timeline/arrows";
import { OfReasons } from "./views/timeline/OfReasons";
import { OfSlice } from "./views/timeline/OfSlice";
import { Perfetto } from "./views/timeline/Perfetto";

mount(
  server,
  document.getElementById("app")!,
  {
    Chains: later(async () => (await import("./views/Chains")).Chains),
    Costs: later(async () => (await import("./views/Costs")).Costs),
    Drawing,
    Flame: later(async () => (await import("./views/Flame")).Flame),
    Gauges: later(async () => (await import("./views/Gauges")).Gauges),
    Multiplication: later(async () => (await import("./views/Multiplication")).Multiplication),
    TimelineView: later(async () => (await import("./views/Timeline")).TimelineView),
  },
  {
    Arrows,
    Chooser,
    Compared: later(async () => (await import("./views/compare/Compared")).Compared),
    Comparison,
    Events,
    Home,
    Live: later(async () => (await import("./views/Live")).Live),
    OfReasons,
    OfSlice,
    Perfetto,
    Reading,
    Recordings,
    useArrows,
    useControls,
  },
);
serve(server);
