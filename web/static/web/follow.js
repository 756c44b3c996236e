// Keeps a page of the walkthrough with its run: socket, polling, focus, play.
//
// Every update, however it comes, is a set of whole parts; one of them is #cursor,
// which says what the parts show. So a missed message leaves no gap and a repeated
// one no duplicate.

const POLL_EVERY = 1000;
const SPEAK_EVERY = 1000;
const WORDS_PER_SECOND = 3.2;
const SHORTEST_STEP = 4000;

const socket = document.getElementById("socket");
const bar = document.getElementById("bar");
const state = document.getElementById("link-state");
const voice = document.getElementById("voice");

const cursor = () => document.getElementById("cursor");
const place = ({ dataset }) => `${dataset.run} ${dataset.step} ${dataset.event}`;

// Parts are asked for by an element that stays: a link may be replaced meanwhile,
// and htmx would then find no place for the answer.

function fetchParts(address, push) {
  htmx.ajax("GET", address, {
    source: socket,
    target: "#cursor",
    swap: "none",
    push,
  });
}

document.addEventListener("click", (event) => {
  const link = event.target.closest(".walk a[href]");
  const elsewhere =
    event.button || event.ctrlKey || event.metaKey || event.shiftKey || event.altKey;
  if (!link || elsewhere) return;
  event.preventDefault();
  fetchParts(link.getAttribute("href"), "true");
});

const refused = document.getElementById("refused");
for (const failure of ["htmx:responseError", "htmx:sendError"]) {
  document.addEventListener(failure, ({ detail }) => {
    // That polling gets nothing is said by the bar, and it asks again by itself.
    if (!detail.pathInfo.requestPath.startsWith(socket.dataset.events)) {
      refused.hidden = false;
    }
  });
}
document.addEventListener("htmx:beforeSwap", ({ detail }) => {
  refused.hidden = !detail.isError;
});

// Live: the socket tells, and is told where this page stands.

let wrapper = null;
let polling = null;
let focusedId = null;
let heard = Date.now();

htmx.config.wsReconnectDelay = (tries) => Math.min(250 * 2 ** tries, 4000);

function show(link) {
  state.dataset.state = link;
  state.textContent = state.dataset[link];
  bar.hidden = link !== "off";
}

function tell() {
  const { run, step, event, have } = cursor().dataset;
  wrapper?.send(
    JSON.stringify({
      do: "goto",
      run,
      step: Number(step),
      seq: event === "" ? null : Number(event),
      have,
    }),
  );
}

function poll() {
  const { step, event, seq, have } = cursor().dataset;
  const query = new URLSearchParams({ after: seq, have, step, event });
  fetchParts(`${socket.dataset.events}?${query}`);
}

document.addEventListener("htmx:wsConnecting", () => {
  if (polling === null) show("connecting");
});

document.addEventListener("htmx:wsOpen", (event) => {
  wrapper = event.detail.socketWrapper;
  clearInterval(polling);
  polling = null;
  refused.hidden = true;
  show("live");
  tell();
});

document.addEventListener("htmx:wsClose", () => {
  wrapper = null;
  show("off");
  polling ??= setInterval(poll, POLL_EVERY);
});

document.addEventListener("htmx:wsBeforeMessage", (event) => {
  const page = new DOMParser().parseFromString(event.detail.message, "text/html");
  const coming = page.getElementById("cursor");
  const shown = cursor();
  const stale =
    coming !== null &&
    (place(coming) !== place(shown) ||
      Number(coming.dataset.seq) < Number(shown.dataset.seq));
  if (stale) event.preventDefault();
  focusedId = document.activeElement?.id || null;
});

// A part that held the focus was replaced: its successor gets it.
document.addEventListener("htmx:wsAfterMessage", () => {
  if (focusedId && document.activeElement === document.body) {
    document.getElementById(focusedId)?.focus({ preventScroll: true });
  }
});

// Whatever brought new parts: say so, keep the place in view, tell the socket.

let before = { ...cursor().dataset };
let speaking = null;

function speak() {
  speaking ??= setTimeout(
    () => {
      speaking = null;
      heard = Date.now();
      voice.textContent = cursor().dataset.say;
    },
    Math.max(0, SPEAK_EVERY - (Date.now() - heard)),
  );
}

function changed() {
  const now = { ...cursor().dataset };
  const moved = now.step !== before.step || now.event !== before.event;
  if (now.seq !== before.seq) speak();
  if (now.step !== before.step && !playing) {
    document.getElementById("title").focus({ preventScroll: true });
    scrollTo({ top: 0 });
  } else if (now.event !== before.event && now.event !== "") {
    document.querySelector(".is-current")?.scrollIntoView({ block: "nearest" });
  }
  before = now;
  if (moved && playing !== null) stay();
  if (moved) tell();
}

new MutationObserver(changed).observe(cursor().parentElement, {
  childList: true,
});

// Play: presses next for the reader, at reading speed; it never starts by itself.

let playing = null;

function dwell() {
  const words = document.getElementById("story").textContent.split(/\s+/).length;
  const step = Math.max(SHORTEST_STEP, (words / WORDS_PER_SECOND) * 1000);
  const events = document.querySelectorAll("#events .event").length;
  // A step that is shown as a whole is one stop, else each of its events is.
  return cursor().dataset.event === "" ? step : step / Math.max(1, events);
}

// From the moment a place is on screen: what is there says how long to stay.
function stay() {
  clearTimeout(playing);
  playing = setTimeout(advance, dwell());
}

function mark() {
  document.documentElement.toggleAttribute("data-playing", playing !== null);
  document
    .getElementById("play")
    .setAttribute("aria-pressed", String(playing !== null));
}

function advance() {
  const next = document.getElementById("next");
  const { status } = cursor().dataset;
  if (next.matches("a, button")) next.click();
  else if (status !== "running") return pause();
  stay();
}

function pause() {
  clearTimeout(playing);
  playing = null;
  mark();
}

document.addEventListener("click", (event) => {
  if (!event.target.closest("#play")) return;
  if (playing !== null) return pause();
  advance();
  mark();
});

new MutationObserver(mark).observe(document.getElementById("moves").parentElement, {
  childList: true,
});
