/** Pictures and numbers out of the page: saved as SVG, PNG and CSV, or copied. */
import type { Recording } from "../data/source";
import { emulation } from "../maths/emulated";
import { instant, nameOf } from "../maths/format";
import { other, recording, shown, theme, zoomed } from "../state/store";
import { aboutOf, type Frame, framed } from "./frame";
import { token } from "./tokens";

/** Room between the drawings of one picture. */
const GAP = 12;

/** What a heading above a drawing takes, which the page has outside of it: `data-heading`. */
const HEADING = 20;

/** The recordings that a figure is of: both below an element that says so (compare/Compared.tsx), else the one that is open. */
function shownIn(body: HTMLElement | null): Recording[] {
  const both = body?.closest("[data-both]") ? other.value : null;
  return [recording.value, both].filter((it) => it !== null);
}

/** What a picture takes along of the page around it. */
export function frameOf(title: string, caption: string, body: HTMLElement | null): Frame {
  const open = recording.value;
  const of = shownIn(body);
  const { t0, t1 } = shown.value;
  const swatches = [...(body?.querySelectorAll<HTMLElement>(":is(.legend, .keys) li") ?? [])];
  const legend = swatches.map((entry) => {
    const drawn = entry.querySelector("svg")?.cloneNode(true) as SVGSVGElement | undefined;
    return {
      swatch: drawn ? new XMLSerializer().serializeToString(drawn) : "",
      words: (entry.textContent ?? "").replace(/\s+/g, " ").trim(),
    };
  });
  // Two have no time in common; their captions say which stretches they show.
  const when =
    open?.timeline && of.length === 1 ? `${instant(Math.round(t0))} to ${instant(Math.round(t1))}` : "";
  return {
    title,
    about: aboutOf(
      of.map(nameOf),
      when,
      of.map(({ report }) => report.recording.tool ?? ""),
    ),
    warning: emulation(open?.report) || emulation(other.value?.report),
    legend,
    caption,
  };
}

/** A picture with its frame, coloured. */
export function alone(picture: string, frame: Frame): string {
  return coloured(framed(picture, frame));
}

/** What a file of a picture is called: its recordings, the picture, and the stretch of time where it is not all. */
export function fileName(id: string, kind: string, body: HTMLElement | null): string {
  const { t0, t1 } = shown.value;
  const span = zoomed.value
    ? [`${instant(Math.round(t0))}-${instant(Math.round(t1))}`.replaceAll(" ", "")]
    : [];
  const name = [...shownIn(body).map(nameOf), id, ...span].join("-");
  return `${name.replace(/[^\w.~-]+/g, "_")}.${kind}`;
}

/** SVG elements, one below the other, as one that stands alone. */
export function svgText(drawn: SVGSVGElement[]): string {
  let [width, height] = [0, 0];
  const inside = drawn.map((svg) => {
    const box = svg.getBoundingClientRect();
    const { heading } = svg.dataset;
    if (height > 0) height += GAP;
    if (heading) height += HEADING;
    const y = height;
    width = Math.max(width, Math.round(box.width));
    height += Math.round(box.height);
    return (heading ? headingText(heading, y - 6) : "") + placed(svg, box, y);
  });
  return standalone(inside.join(""), width, height);
}

function headingText(heading: string, y: number): string {
  const text = document.createElementNS("http://www.w3.org/2000/svg", "text");
  for (const [name, value] of Object.entries({ y, fill: "var(--ink)", "font-size": 12, "font-weight": 600 }))
    text.setAttribute(name, String(value));
  text.textContent = heading;
  return new XMLSerializer().serializeToString(text);
}

/** An SVG element as it is on the page, as a part of another at that height. */
function placed(svg: SVGSVGElement, { width, height }: DOMRect, y: number): string {
  const copy = svg.cloneNode(true) as SVGSVGElement;
  copy.setAttribute("y", String(y));
  copy.setAttribute("width", String(Math.round(width)));
  copy.setAttribute("height", String(Math.round(height)));
  if (!copy.hasAttribute("viewBox")) copy.setAttribute("viewBox", `0 0 ${width} ${height}`);
  // On the page a style sheet says this.
  for (const text of copy.querySelectorAll("text, tspan")) {
    const faint = text.classList.contains("faint");
    if (!text.hasAttribute("fill") && (faint || text.tagName === "text"))
      text.setAttribute("fill", faint ? "var(--soft)" : "var(--ink)");
  }
  // The page's content policy refuses style attributes, also in what is made of it.
  copy.removeAttribute("style");
  copy.setAttribute("font-size", "12");
  return new XMLSerializer().serializeToString(copy);
}

/** An SVG that stands alone, out of elements drawn as text: with the patterns, and the colours of the theme for custom properties. */
export function standalone(
  inside: string,
  width: number,
  height: number,
  fills = document.querySelector("#patterns defs")?.outerHTML ?? "",
): string {
  return coloured(
    `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" viewBox="0 0 ${width} ${height}" font-family="system-ui, sans-serif">${fills}<rect width="100%" height="100%" fill="var(--page)"/>${inside}</svg>`,
  );
}

function coloured(svg: string): string {
  return svg.replace(/var\(--([a-z0-9_-]+)\)/g, (_, name: string) => token(name, theme.value));
}

export async function pngOfSvg(text: string): Promise<Blob> {
  const image = new Image();
  image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(text)}`;
  await image.decode();
  const canvas = document.createElement("canvas");
  canvas.width = image.width * 2;
  canvas.height = image.height * 2;
  canvas.getContext("2d")!.drawImage(image, 0, 0, canvas.width, canvas.height);
  return pngOf(canvas);
}

function pngOf(canvas: HTMLCanvasElement): Promise<Blob> {
  return new Promise((done, failed) => {
    canvas.toBlob((blob) => (blob ? done(blob) : failed(new Error("The browser made no PNG."))), "image/png");
  });
}

/** Saves a file; returns what happened, for the live region. */
export function save(blob: Blob, name: string): string {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
  return `${name} was saved.`;
}

/** Puts a picture on the clipboard; returns what happened, and what to do where it could not be. */
export async function copy(png: Blob, title: string): Promise<string> {
  try {
    await navigator.clipboard.write([new ClipboardItem({ "image/png": png })]);
    return `The picture "${title}" is on the clipboard.`;
  } catch {
    return "This browser does not let the page copy pictures. Save the PNG instead.";
  }
}
