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
import { App, type OfServer } from "./views/App";

/** `ofServer`: what only a server has, which no report file carries. */
export function mount(source: Source, root: Element, ofServer?: OfServer): void {
  const sheet = new CSSStyleSheet();
  sheet.replaceSync(themeSheet());
  document.adoptedStyleSheets = [...document.adoptedStyleSheets, sheet];
  start(source);
  listen();
  render(<App inlined={source.inlined} {...(ofServer ? { ofServer } : {})} />, root);
}
