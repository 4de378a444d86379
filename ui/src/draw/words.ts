/** How much room words take in a picture, before anybody has drawn them: no word lies on what is beside it. */

/** Of letters at 12 px, in the widest of the fonts that a page may have; others scale. */
const LETTER = 7.2;
const CAPITAL = 8.8;
const SIZE = 12;

export function wideOf(text: string, size = SIZE): number {
  const capitals = text.replace(/[^A-Z_%@]/g, "").length;
  return ((capitals * CAPITAL + (text.length - capitals) * LETTER) * size) / SIZE;
}

/** The text, or as much of its beginning as fits with three dots; empty where not even three letters do. */
export function elided(text: string, room: number, size = SIZE): string {
  if (wideOf(text, size) <= room) return text;
  let letters = text.length - 1;
  while (letters > 0 && wideOf(`${text.slice(0, letters)}…`, size) > room) letters--;
  return letters >= 3 ? `${text.slice(0, letters).trimEnd()}…` : "";
}

/** The same with its middle left out: names of VMs differ at both ends. */
export function squeezed(text: string, room: number, size = SIZE): string {
  if (wideOf(text, size) <= room) return text;
  for (let letters = text.length - 1; letters >= 4; letters--) {
    const end = Math.floor(letters / 2);
    const shown = `${text.slice(0, letters - end)}…${text.slice(text.length - end)}`;
    if (wideOf(shown, size) <= room) return shown;
  }
  return elided(text, room, size);
}
