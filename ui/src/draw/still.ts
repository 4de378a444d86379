/**
 * A part of the page as one SVG: words where they stand, drawings as they are, the lines around boxes. What a style sheet says of them
 * does not come along, so everything gets the looks that the browser gave it.
 */
import { standalone } from "./export";
import { escaped } from "./markup";

/** Looks that a drawing's parts have from what they are in, unless they have their own. */
const LOOKS = [
  "fill",
  "fill-opacity",
  "stroke",
  "stroke-width",
  "stroke-dasharray",
  "stroke-linecap",
  "stroke-linejoin",
  "paint-order",
  "text-anchor",
  "font-size",
  "font-weight",
];

/** How far below the upper edge of a line its words stand, as a share of its height. */
const BASELINE = 0.8;

/** Words whose upper edges are nearer than this are in one line. */
const SAME_LINE = 2;

/** All that is seen of an element's shadow tree; its fills are in the tree. */
export function pictureText(host: Element): string {
  const box = host.getBoundingClientRect();
  const fills = host.shadowRoot!.querySelector<SVGSVGElement>(".defs")!;
  const inside = insideOf(host.shadowRoot!, box);
  return standalone(inside, Math.round(box.width), Math.round(box.height), drawing(fills, place(fills, box)));
}

/** Where something is, from the corner of the picture. */
function place(of: Element | Range, from: DOMRect): DOMRect {
  const { x, y, width, height } = of.getBoundingClientRect();
  const [left, top] = [x - from.x, y - from.y].map((at) => Math.round(at * 10) / 10);
  return new DOMRect(left, top, Math.round(width * 10) / 10, height);
}

function insideOf(of: Node, from: DOMRect): string {
  return [...of.childNodes].map((node) => seen(node, from)).join("");
}

function seen(node: Node, from: DOMRect): string {
  if (node instanceof Text) return words(node, from);
  if (!(node instanceof Element)) return "";
  const box = place(node, from);
  if (box.width === 0) return "";
  if (node instanceof SVGSVGElement) return drawing(node, box);
  // What is closed shows its first line.
  const closed = node instanceof HTMLDetailsElement && !node.open;
  return (
    edges(getComputedStyle(node), box) + (closed ? seen(node.firstElementChild!, from) : insideOf(node, from))
  );
}

/** A border all around, or one on the left, and an outline. */
function edges(look: CSSStyleDeclaration, { x, y, width, height }: DOMRect): string {
  const [left, top] = [look.borderLeftWidth, look.borderTopWidth].map(Number.parseFloat) as [number, number];
  const box = (wide: number, colour: string, fill: string) =>
    wide > 0
      ? `<rect x="${x}" y="${y}" width="${width}" height="${height}" rx="${Number.parseFloat(look.borderRadius)}" fill="${fill}" stroke="${colour}" stroke-width="${wide}"/>`
      : "";
  const ground = /, 0\)$/.test(look.backgroundColor) ? "none" : look.backgroundColor;
  const mark = `<rect x="${x}" y="${y}" width="${left}" height="${height}" fill="${look.borderLeftColor}"/>`;
  return (
    (left > top ? mark : box(top && left, look.borderTopColor, ground)) +
    (look.outlineStyle === "none" ? "" : box(Number.parseFloat(look.outlineWidth), look.outlineColor, "none"))
  );
}

/** Words, in the lines into which the browser broke them. */
function words(text: Text, from: DOMRect): string {
  const look = getComputedStyle(text.parentElement!);
  const range = document.createRange();
  const lines: { box: DOMRect; words: string[] }[] = [];
  for (const { 0: word, index } of text.data.matchAll(/\S+/g)) {
    range.setStart(text, index);
    range.setEnd(text, index + word.length);
    const box = place(range, from);
    const last = lines.at(-1);
    if (last && Math.abs(last.box.y - box.y) < SAME_LINE) last.words.push(word);
    else if (box.width > 0) lines.push({ box, words: [word] });
  }
  return lines
    .map(
      ({ box, words }) =>
        `<text x="${box.x}" y="${box.y + BASELINE * box.height}" fill="${look.color}" font-size="${look.fontSize}" font-weight="${look.fontWeight}">${escaped(words.join(" "))}</text>`,
    )
    .join("");
}

/** A drawing with its looks as attributes. */
function drawing(svg: SVGSVGElement, { x, y, width, height }: DOMRect): string {
  const copy = svg.cloneNode(true) as SVGSVGElement;
  const copies = [copy, ...copy.querySelectorAll("*")];
  [svg, ...svg.querySelectorAll("*")].forEach((part, i) => {
    const [look, around] = [getComputedStyle(part), getComputedStyle(part.parentElement ?? part)];
    const own = copies[i]!;
    for (const name of LOOKS) {
      const value = look.getPropertyValue(name);
      if (i === 0 || value !== around.getPropertyValue(name) || own.hasAttribute(name))
        own.setAttribute(name, value);
    }
    if (look.getPropertyValue("vector-effect") !== "none")
      own.setAttribute("vector-effect", look.getPropertyValue("vector-effect"));
    if (look.display === "none") own.remove();
    own.removeAttribute("class");
  });
  const size = { x, y, width, height, overflow: getComputedStyle(svg).overflow };
  for (const [name, value] of Object.entries(size)) copy.setAttribute(name, String(value));
  return new XMLSerializer().serializeToString(copy);
}
