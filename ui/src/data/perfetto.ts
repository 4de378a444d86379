/**
 * Hands a trace to the Perfetto UI in another tab, as its documentation says ("Deep linking to the Perfetto UI",
 * perfetto.dev/docs/visualization/deep-linking-to-perfetto-ui):
 *
 * ```text
 * open its page;  "PING" until it says "PONG";  then {perfetto: {buffer, title}}
 * ```
 * The trace goes from tab to tab. This page fetches nothing from there; the tab does, so it needs the network.
 */
export const PERFETTO = "https://ui.perfetto.dev";

const PING_MS = 100;
const PATIENCE_MS = 12_000;

/** Call it from a click: browsers open no tab otherwise. Resolves when the trace was handed over. */
export async function openInPerfetto(trace: Promise<ArrayBuffer>, title: string): Promise<void> {
  const tab = window.open(`${PERFETTO}/#!/`);
  if (!tab) throw new Error("The browser did not open a tab; allow pop-ups of this page.");
  const ready = pong(tab);
  // Both are waited for together, so that neither fails unheard.
  try {
    const [buffer] = await Promise.all([trace, ready]);
    tab.postMessage({ perfetto: { buffer, title } }, PERFETTO, [buffer]);
  } catch (error) {
    void sayIn(tab, (error as Error).message);
    throw error;
  }
}

/** The tab shows an error of the browser by now, which does not say what to do: it is emptied and told. */
async function sayIn(tab: Window, sentence: string): Promise<void> {
  if (tab.closed) return;
  tab.location.replace("about:blank");
  for (let turn = 0; turn < 20; turn++) {
    await new Promise((done) => setTimeout(done, PING_MS));
    try {
      if (tab.location.href !== "about:blank") continue;
      tab.document.title = "kvmscope";
      tab.document.body.textContent = sentence;
      return;
    } catch {
      // Still the other page, which may not be looked into.
    }
  }
}

function pong(tab: Window): Promise<void> {
  return new Promise((heard, failed) => {
    const started = performance.now();
    const end = () => {
      clearInterval(timer);
      removeEventListener("message", listen);
    };
    const listen = (event: MessageEvent) => {
      if (event.source !== tab || event.origin !== PERFETTO || event.data !== "PONG") return;
      end();
      heard();
    };
    const timer = setInterval(() => {
      const late = performance.now() - started > PATIENCE_MS;
      if (tab.closed || late) {
        end();
        failed(
          new Error(
            late
              ? "ui.perfetto.dev does not answer. Without a network, click 'Save trace' in kvmscope: it writes a file that Perfetto reads."
              : "The tab of ui.perfetto.dev was closed before it was ready.",
          ),
        );
      } else tab.postMessage("PING", PERFETTO);
    }, PING_MS);
    addEventListener("message", listen);
  });
}
