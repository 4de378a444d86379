/** A Section's figure in its frame: title, picture, caption, and ways to take it along. */
import type { FigureData } from "../data/types";
import { Drawing } from "./Drawing";
import { Figure } from "./Figure";
import { matrixCsv } from "./Matrix";

export function Drawn({ section, figure }: { section: string; figure: FigureData }) {
  return (
    <Figure
      id={`${section}-${figure.id}`}
      title={figure.title}
      caption={figure.caption}
      // A table is no picture.
      {...(figure.drawing === "matrix" ? { picture: false, csv: () => matrixCsv(figure) } : {})}
    >
      <Drawing figure={figure} />
    </Figure>
  );
}
