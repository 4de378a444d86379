/** A Section's figure in its frame: title, picture, caption, and ways to take it along. */
import type { ComponentChildren } from "preact";
import type { FigureData } from "../data/types";
import { matrixCsv } from "../maths/matrix";
import { Figure } from "./Figure";

interface Props {
  section: string;
  figure: FigureData;
  /** The picture as vectors, where it is no SVG on the page. */
  svg?: () => string;
  children: ComponentChildren;
}

export function Drawn({ section, figure, children, ...vectors }: Props) {
  return (
    <Figure
      id={`${section}-${figure.id}`}
      title={figure.title}
      caption={figure.caption}
      // A table is no picture.
      {...(figure.drawing === "matrix" ? { picture: false, csv: () => matrixCsv(figure) } : vectors)}
    >
      {children}
    </Figure>
  );
}
