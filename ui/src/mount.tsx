/** Puts the application into a page. */
import { render } from "preact";
import type { Source } from "./data/source";
import { themeSheet } from "./draw/tokens";
import { listen } from "./state/keys";
import { start } from "./state/store";
import "./style/page.css";
import "./style/findings.css";
import "./style/figures.css";
import "./style/media.css";
import { App, type OfServer, type Views } from "./views/App";

/** `views`: those that are not needed at once, as they are or as what fetches them. `ofServer`: what only a server has, which no report file carries. */
export function mount(source: Source, root: Element, views: Views, ofServer?: OfServer): void {
  const sheet = new CSSStyleSheet();
  sheet.replaceSync(themeSheet());
  document.adoptedStyleSheets = [...document.adoptedStyleSheets, sheet];
  start(source);
  listen();
  render(<App views={views} {...(ofServer ? { ofServer } : {})} />, root);
}
