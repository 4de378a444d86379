/** Pictures and numbers out of the page: SVG, PNG, CSV, on the clipboard where it may be used, else as a file. */
import { theme } from "../state/store";
import { token } from "./tokens";

/** An SVG element that stands alone: custom properties replaced by the colours of the theme. */
export function svgText(svg: SVGSVGElement): string {
  const copy = svg.cloneNode(true) as SVGSVGElement;
  const defs = document.querySelector("#patterns defs");
  if (defs) copy.prepend(defs.cloneNode(true));
  const { width, height } = svg.getBoundingClientRect();
  copy.setAttribute("xmlns", "http://www.w3.org/2000/svg");
  copy.setAttribute("width", String(Math.round(width)));
  copy.setAttribute("height", String(Math.round(height)));
  if (!copy.hasAttribute("viewBox")) copy.setAttribute("viewBox", `0 0 ${width} ${height}`);
  copy.setAttribute("style", `background:${token("page", theme.value)};font-family:system-ui,sans-serif`);
  return new XMLSerializer()
    .serializeToString(copy)
    .replace(/var\(--([a-z0-9_-]+)\)/g, (_, name: string) => token(name, theme.value));
}

/** A canvas inside an SVG, for programs that take only those. */
export function svgOfCanvas(canvas: HTMLCanvasElement): string {
  const { width, height } = canvas;
  const image = `<image width="${width}" height="${height}" href="${canvas.toDataURL("image/png")}"/>`;
  return `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}">${image}</svg>`;
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

export function pngOf(canvas: HTMLCanvasElement): Promise<Blob> {
  return new Promise((done, failed) => {
    canvas.toBlob((blob) => (blob ? done(blob) : failed(new Error("The browser made no PNG."))), "image/png");
  });
}

/** Copies; returns what happened, for the live region. */
export async function hand(blob: Blob, name: string): Promise<string> {
  try {
    const text = blob.type !== "image/png";
    const item = text
      ? new ClipboardItem({ "text/plain": new Blob([await blob.text()], { type: "text/plain" }) })
      : new ClipboardItem({ "image/png": blob });
    await navigator.clipboard.write([item]);
    return `${name} is on the clipboard.`;
  } catch {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(blob);
    link.download = name;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 1000);
    return `${name} was saved.`;
  }
}
