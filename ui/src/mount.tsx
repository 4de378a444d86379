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
import { App } from "./views/App";

export function mount(source: Source, root: Element): void {
  const sheet = new CSSStyleSheet();
  sheet.replaceSync(themeSheet());
  document.adoptedStyleSheets = [...document.adoptedStyleSheets, sheet];
  start(source);
  listen();
  render(<App inlined={source.inlined} />, root);
}
