/** What figures of one section are called: two machines have pictures of the same kind. */
import type { FigureData } from "../data/types";

/** The machine that a figure is about, at the end of its id. */
const MACHINE = /-(L\d+[^-]*)$/;

/** Figures of which no two have one title where their machines tell them apart. */
export function distinct(figures: FigureData[]): FigureData[] {
  const counts = new Map<string, number>();
  for (const { title } of figures) counts.set(title, (counts.get(title) ?? 0) + 1);
  return figures.map((figure) => {
    const machine = MACHINE.exec(figure.id)?.[1];
    if (!machine || counts.get(figure.title) === 1) return figure;
    return { ...figure, title: `${figure.title}, by the trace of ${machine}` };
  });
}
