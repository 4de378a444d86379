// When has a page done what it was asked to? Once nothing is fetched any more, no short timer runs, and no frame is to be drawn.

/** Timers that are longer take something away again: a notice, a file that was saved. */
const SHORT_MS = 1000;

/** In the page, before its own scripts: counts what it still waits for. */
const counting = (shortMs) => {
  let pending = 0;
  const counted = (promise) => {
    pending++;
    return promise.finally(() => pending--);
  };
  const { fetch, requestAnimationFrame, cancelAnimationFrame, setTimeout, clearTimeout } = globalThis;
  globalThis.fetch = (...what) => counted(fetch(...what));
  for (const body of ["arrayBuffer", "blob", "json", "text"]) {
    const read = Response.prototype[body];
    Response.prototype[body] = function () {
      return counted(read.call(this));
    };
  }
  /** Calls that come later, each of which may be called off. */
  const later = (begin, end, isCounted) => {
    const open = new Set();
    const over = (handle) => {
      if (open.delete(handle)) pending--;
    };
    return [
      (run, ...rest) => {
        const handle = begin(
          (...args) => {
            over(handle);
            return run(...args);
          },
          ...rest,
        );
        if (isCounted(...rest)) {
          open.add(handle);
          pending++;
        }
        return handle;
      },
      (handle) => {
        over(handle);
        end(handle);
      },
    ];
  };
  [globalThis.setTimeout, globalThis.clearTimeout] = later(
    setTimeout.bind(globalThis),
    clearTimeout.bind(globalThis),
    (ms = 0) => ms < shortMs,
  );
  [globalThis.requestAnimationFrame, globalThis.cancelAnimationFrame] = later(
    requestAnimationFrame.bind(globalThis),
    cancelAnimationFrame.bind(globalThis),
    () => true,
  );
  let skipped = 0;
  let held = null;
  const now = performance.now.bind(performance);
  performance.now = () => held ?? now() + skipped;
  globalThis.holdTime = () => {
    held = performance.now();
  };
  globalThis.releaseTime = () => {
    skipped = held - now();
    held = null;
  };
  globalThis.skipTime = (ms) => {
    skipped += ms;
  };
  // Two frames later nothing has been begun either.
  globalThis.isSettled = () =>
    new Promise((done) => {
      const frame = (then) => requestAnimationFrame.call(globalThis, then);
      frame(() => frame(() => done(pending === 0)));
    });
};

/** The script that a page needs before its own ones, so that [`settled`] can ask it. */
export const COUNTING = `(${counting})(${SHORT_MS});`;

/** Longer than what follows each other within a gesture (GESTURE_MS of state/store.ts). */
export const REST_MS = 700;

/** Lets the hand rest, by the page's own clock: what comes next is another gesture. */
export async function rested(page) {
  await settled(page);
  await page.evaluate((ms) => globalThis.skipTime(ms), REST_MS);
}

/** Before a wait is given up: a server that was not optimized, on a machine that has much else to do. */
export const PATIENCE_MS = 120_000;

/** Does something as one gesture, however long it takes here: the page's own clock stands still meanwhile. */
export async function atOnce(page, work) {
  await page.evaluate(() => globalThis.holdTime());
  await work();
  await page.evaluate(() => globalThis.releaseTime());
}

/** Waits until the page has done all that it was asked to. */
export const settled = (page) =>
  page.waitForFunction(() => globalThis.isSettled(), null, { timeout: PATIENCE_MS });
