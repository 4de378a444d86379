/**
 * What a picture needs once it has left the page: what it shows, of which recording and when, what its colours mean, and
 * that times are not real where they are not.
 */
import { escaped } from "./markup";

export interface Frame {
  title: string;
  /** Recordings, time and recorder, in a line. */
  about: string;
  /** What must stand on every picture of an emulated machine; empty of a real one. */
  warning: string;
  /** The swatch of each entry of the legend as an SVG element of 14 x 14, and its words. */
  legend: { swatch: string; words: string }[];
  caption: string;
}

/** What a picture is of, in a line: its recordings, when, and what recorded them. */
export function aboutOf(names: string[], when: string, tools: string[]): string {
  const which = names.length > 1 ? `before: ${names[0]}, after: ${names[1]}` : (names[0] ?? "");
  // Of what is known of one alone it is not said which.
  const by = tools.every(Boolean) ? [...new Set(tools)].join(" and ") : "";
  return [which, when, by && `recorded by ${by}`].filter(Boolean).join(", ");
}

const PAD = 16;
const LETTER = 6.1;
/** Of short words with figures and signs, whose next neighbour must not touch them. */
const WIDE_LETTER = 6.7;
const LINE = 16;
const ENTRY = 20;

/** Lines of so many letters at most. */
export function wrapped(text: string, letters: number): string[] {
  const lines: string[] = [];
  let line = "";
  for (const word of text.split(/\s+/)) {
    if (line && line.length + 1 + word.length > letters) {
      lines.push(line);
      line = word;
    } else line = line ? `${line} ${word}` : word;
  }
  return line ? [...lines, line] : lines;
}

/** A picture that stands alone, with all of that around it. */
export function framed(picture: string, frame: Frame): string {
  const size = /^<svg [^>]*?width="([\d.]+)" height="([\d.]+)"/.exec(picture);
  if (!size) return picture;
  const inner = { width: Number(size[1]), height: Number(size[2]) };
  const width = Math.max(inner.width, 420) + 2 * PAD;
  const letters = Math.floor((width - 2 * PAD) / LETTER);
  const out: string[] = [];
  let y = PAD + 4;
  const line = (words: string, more: string, high = LINE) => {
    y += high;
    out.push(`<text x="${PAD}" y="${y - 5}" ${more}>${escaped(words)}</text>`);
  };
  for (const words of wrapped(frame.title, Math.floor(letters * 0.78)))
    line(words, 'font-size="15" font-weight="600" fill="var(--ink)"', 20);
  if (frame.about) line(frame.about, 'font-size="11.5" fill="var(--soft)"');
  if (frame.warning) line(frame.warning, 'font-size="12" font-weight="600" fill="var(--ink)"');
  y += 8;
  out.push(picture.replace(/^<svg /, `<svg x="${PAD}" y="${y}" `));
  y += inner.height + 10;
  let x = PAD;
  for (const { swatch, words } of frame.legend) {
    const wide = 34 + words.length * WIDE_LETTER;
    if (x > PAD && x + wide > width - PAD) {
      x = PAD;
      y += ENTRY;
    }
    out.push(
      `<g transform="translate(${x} ${y})">${swatch}<text x="20" y="11" font-size="11.5" fill="var(--ink)">${escaped(words)}</text></g>`,
    );
    x += wide;
  }
  if (frame.legend.length > 0) y += ENTRY + 4;
  for (const words of wrapped(frame.caption, letters)) line(words, 'font-size="11.5" fill="var(--soft)"');
  const height = Math.ceil(y + PAD);
  return `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" viewBox="0 0 ${width} ${height}" font-family="system-ui, sans-serif"><rect width="100%" height="100%" fill="var(--page)"/>${out.join("")}</svg>`;
}
