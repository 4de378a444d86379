/** The dashboard's entry: recordings come from the server that sent this page. */
import { server } from "./data/server";
import { mount } from "./mount";

mount(server, document.getElementById("app")!);
