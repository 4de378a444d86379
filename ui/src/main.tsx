/** The dashboard's entry: recordings come from the server that sent this page. */
import { server } from "./data/server";
import { mount } from "./mount";
import { useControls } from "./views/Controls";
import { Events } from "./views/Events";
import { Live } from "./views/Live";
import { Recordings } from "./views/Recordings";
import { useArrows } from "./views/timeline/arrows";
import { Perfetto } from "./views/timeline/Perfetto";

mount(server, document.getElementById("app")!, {
  Events,
  Live,
  Perfetto,
  Recordings,
  useArrows,
  useControls,
});
