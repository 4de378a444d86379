import { expect, test } from "vitest";
import { aboutOf, framed, wrapped } from "./frame";

const PICTURE =
  '<svg xmlns="http://www.w3.org/2000/svg" width="600" height="80" viewBox="0 0 600 80"><path d="M0 0"/></svg>';

test("a picture alone says what it is of, when, and that its times are not real", () => {
  const out = framed(PICTURE, {
    title: "Where was <each> vCPU?",
    about: "svm, 0 s to 1.2 s",
    warning: "Emulated (Bochs): times are not real",
    legend: [{ swatch: "<rect/>", words: "preempted 46.2 %" }],
    caption: "Most of it waited.",
  });
  for (const words of [
    "Where was &lt;each&gt; vCPU?",
    "svm, 0 s to 1.2 s",
    "times are not real",
    "preempted 46.2 %",
    "Most of it waited.",
  ])
    expect(out).toContain(words);
  expect(out).toContain('<svg x="16" y="');
  const [, width, height] = /width="([\d.]+)" height="([\d.]+)"/.exec(out)!;
  expect(Number(width)).toBe(632);
  expect(Number(height)).toBeGreaterThan(80 + 100);
});

test("what is no picture of ours stays as it is", () => {
  expect(framed("<p/>", { title: "", about: "", warning: "", legend: [], caption: "" })).toBe("<p/>");
});

test("words wrap between words alone, and a long one has a line of its own", () => {
  expect(wrapped("one two three", 7)).toEqual(["one two", "three"]);
  expect(wrapped("incomprehensibilities x", 5)).toEqual(["incomprehensibilities", "x"]);
  expect(wrapped("", 5)).toEqual([]);
});

test("a picture of two recordings names both, and what recorded both once", () => {
  expect(aboutOf(["off", "on"], "", ["kvmscope 0.1.0", "kvmscope 0.1.0"])).toBe(
    "before: off, after: on, recorded by kvmscope 0.1.0",
  );
  expect(aboutOf(["off", "on"], "", ["kvmscope 0.1.0", ""])).toBe("before: off, after: on");
  expect(aboutOf(["svm"], "0 s to 1.2 s", ["trace-cmd"])).toBe("svm, 0 s to 1.2 s, recorded by trace-cmd");
});
