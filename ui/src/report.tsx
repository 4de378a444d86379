/** The report file's entry: everything lies in the page. Text that stands there already stays, for readers without script. */
import { inlined, readInlined } from "./data/inlined";
import { mount } from "./mount";

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
      mount(inlined(read), at);
      document.documentElement.dataset.kvmscope = "mounted";
    },
    (error: Error) => {
      const line = document.createElement("p");
      line.textContent = `The data in this page could not be read: ${error.message}`;
      at.prepend(line);
    },
  );
}
