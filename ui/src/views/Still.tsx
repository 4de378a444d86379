/**
 * A Section's figure in a report file. The page has every figure already, drawn by the program for paper and for readers without script.
 * What has nothing to press in a file is shown as it stands there, so that no file carries code that would draw it once more.
 */
import { effect } from "@preact/signals";
import { useLayoutEffect, useRef } from "preact/hooks";
import type { FigureData } from "../data/types";
import { pictureText } from "../draw/still";
import { go, theme } from "../state/store";
import { Bars } from "./Bars";
import { Drawn } from "./Drawn";
import { Levels } from "./Levels";
import { Waterfalls } from "./Waterfall";

interface Props {
  section: string;
  figure: FigureData;
}

export function Still(props: Props) {
  const { figure } = props;
  switch (figure.drawing) {
    case "bars":
      return (
        <Drawn {...props}>
          <Bars groups={figure.groups} />
        </Drawn>
      );
    case "levels":
      return (
        <Drawn {...props}>
          <Levels title={figure.title} levels={figure} />
        </Drawn>
      );
    case "waterfall":
      return (
        <Drawn {...props}>
          <Waterfalls wholes={figure.wholes} />
        </Drawn>
      );
    default:
      return <Taken {...props} />;
  }
}

/** The style of the page in the theme of this one: it is off on the screen once the dashboard stands. */
const style = new CSSStyleSheet();
const STYLE = document.getElementById("static-style")?.textContent ?? "";
effect(() => {
  const dark = theme.value === "dark" ? "all" : "not all";
  style.replaceSync(STYLE.replaceAll(":root", ":host").replace("(prefers-color-scheme: dark)", dark));
});

/** The page's own picture, in a tree of its own: its style and that of the dashboard do not touch each other. */
function Taken(props: Props) {
  const host = useRef<HTMLDivElement>(null);
  const id = `${props.section}-${props.figure.id}`;
  useLayoutEffect(() => {
    const root = host.current!.attachShadow({ mode: "open" });
    root.adoptedStyleSheets = [style];
    const copy = document.getElementById(id)?.cloneNode(true) as HTMLElement | undefined;
    const fills = document.querySelector(".defs")?.cloneNode(true);
    if (!copy || !fills) {
      root.textContent = "This file has no picture of it.";
      return;
    }
    // The frame around it has these, and one heading above those inside.
    for (const said of copy.querySelectorAll(":scope > :is(h3, figcaption)")) said.remove();
    for (const title of copy.querySelectorAll("h4")) title.ariaLevel = "3";
    root.append(fills, copy);
    root.addEventListener("click", (event) => {
      const to = (event.target as Element).closest("a")?.getAttribute("href");
      if (!to) return;
      event.preventDefault();
      go({ view: "findings", finding: to.slice(1) }, true);
    });
  }, []);
  return (
    <Drawn {...props} svg={() => pictureText(host.current!)}>
      <div class="still" ref={host} />
    </Drawn>
  );
}
