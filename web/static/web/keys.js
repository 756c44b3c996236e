// Keys press the visible control that names them in data-keys; nothing else. One
// that rests takes its keys, too: Space would scroll the page at the last event.

const STORED = "single-keys";
const OWN_KEYS = "input, textarea, select, pre, [contenteditable]";
const CONTROLS = `a, button, summary, ${OWN_KEYS}`;

const help = document.getElementById("help");
const singles = document.getElementById("single-keys");

function chord(event) {
  const name = event.key === " " ? "Space" : event.key;
  return event.shiftKey && name.length > 1 ? `Shift+${name}` : name;
}

// A single letter or Space may be meant for what has focus (WCAG 2.1.4).
function free(event) {
  const focused = document.activeElement ?? document.body;
  if (focused.matches(OWN_KEYS)) return false;
  if (event.key.length > 1) return true;
  const allowed = singles === null || singles.checked || event.key === " ";
  return allowed && !focused.matches(CONTROLS);
}

function control(keys) {
  return [...document.querySelectorAll("[data-keys]")].find(
    (element) =>
      !element.disabled && element.dataset.keys.split(" ").includes(keys),
  );
}

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.altKey || event.metaKey || event.isComposing) return;
  if (document.querySelector("dialog[open]") || !free(event)) return;
  const pressed = control(chord(event));
  if (!pressed) return;
  event.preventDefault();
  pressed.click();
});

if (help) {
  singles.checked = localStorage.getItem(STORED) !== "off";
  singles.addEventListener("change", () => {
    localStorage.setItem(STORED, singles.checked ? "on" : "off");
  });
  document
    .getElementById("help-open")
    .addEventListener("click", () => help.showModal());
}
