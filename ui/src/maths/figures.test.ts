import { expect, test } from "vitest";
import type { FigureData } from "../data/types";
import { distinct } from "./figures";

test("two pictures of one kind are told apart by their machines, and a single one keeps its title", () => {
  const figure = (id: string, title: string) => ({ id, title }) as FigureData;
  const figures = [
    figure("over-time-L0", "When vCPUs lost time"),
    figure("pauses", "How long"),
    figure("over-time-L1", "When vCPUs lost time"),
    figure("where-L0", "Where"),
  ];
  expect(distinct(figures).map(({ title }) => title)).toEqual([
    "When vCPUs lost time, by the trace of L0",
    "How long",
    "When vCPUs lost time, by the trace of L1",
    "Where",
  ]);
});
