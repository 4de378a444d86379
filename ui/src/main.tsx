/** The dashboard's entry: recordings come from the server that sent this page. */
import { server } from "./data/server";
import { mount } from "./mount";
import { serve } from "./state/serving";
import { useControls } from "./views/Controls";
import { Later as Compared } from "./views/compare/Later";
import { Events } from "./views/Events";
import { Live } from "./views/Live";
import { Recordings } from "./views/Recordings";
import { useArrows } from "./views/timeline/arrows";
import { OfSlice } from "./views/timeline/OfSlice";
import { Perfetto } from "./views/timeline/Perfetto";

mount(server, document.getElementById("app")!, {
  Compared,
  Events,
  Live,
  OfSlice,
  Perfetto,
  Recordings,
  useArrows,
  useControls,
});
serve(server);
