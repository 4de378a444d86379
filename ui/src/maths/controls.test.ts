import { expect, test } from "vitest";
import { isSlider, settings } from "./controls";

const vnfs = { id: "vnfs", title: "VNFs", values: ["1", "2", "8"], chosen: 2 };
const nic = { id: "nic", title: "NIC", values: ["XL710", "E810"], chosen: 0 };

test("numbers get a slider, names a choice", () => {
  expect([vnfs, nic, { ...vnfs, values: ["8"] }].map(isSlider)).toEqual([true, false, false]);
});

test("only what is set otherwise is asked for", () => {
  expect(settings([vnfs, nic], {})).toEqual({});
  expect(settings([vnfs, nic], { vnfs: "8", nic: "E810" })).toEqual({ nic: "E810" });
  expect(settings([vnfs, nic], { vnfs: "9", other: "x" })).toEqual({});
});
