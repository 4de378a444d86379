/** The report file's entry: everything lies in the page. Text that stands there already stays, for readers without script. */
import { inlined, readInlined } from "./data/inlined";
import { mount } from "./mount";
import { Chains } from "./views/Chains";
import { Costs } from "./views/Costs";
import { Flame } from "./views/Flame";
import { Gauges } from "./views/Gauges";
import { Multiplication } from "./views/Multiplication";
import { Still } from "./views/Still";
import { TimelineView } from "./views/Timeline";

/** A file has nothing to fetch views from. */
const VIEWS = { Chains, Costs, Drawing: Still, Flame, Gauges, Multiplication, TimelineView };

const data = document.getElementById("kvmscope-data");
if (data) {
  let root = document.getElementById("app");
  if (!root) {
    root = document.createElement("div");
    root.id = "app";
    document.body.prepend(root);
  }
  const at = root;
  readInlined(data).then(
    (read) => {
      at.replaceChildren();
      mount(inlined(read, document.title.replace(/ - kvmscope$/, "")), at, VIEWS);
      document.documentElement.dataset.kvmscope = "mounted";
    },
    (error: Error) => {
      const line = document.createElement("p");
      line.textContent = `The data in this page could not be read: ${error.message}`;
      at.prepend(line);
    },
  );
}
