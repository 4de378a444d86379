/** The dashboard's entry: recordings come from the server that sent this page. */
import { server } from "./data/server";
import { mount } from "./mount";
import { useControls } from "./views/Controls";
import { Later as Compared } from "./views/compare/Later";
import { Live } from "./views/Live";
import { Recordings } from "./views/Recordings";

mount(server, document.getElementById("app")!, { Compared, Live, Recordings, useControls });
