// A call of high risk is allowed in two steps: the first press names the effect, the second allows.

const soonest = 700; // milliseconds after the first press
const latest = 8000;
const asked = new WeakMap(); // when a form asked for a second press, by element

/** Reports whether a press allows the call of an element. The first one at a call of high risk asks for a second. */
export function isSure(element, pressed) {
  const words = element.querySelector(element.matches('form') ? '.bar > .sure' : '.sure');
  if (!words) return true;
  const since = performance.now() - (asked.get(element) ?? -Infinity);
  if (since < soonest) return false;
  if (since <= latest) return true;
  ask(element, words, pressed);
  return false;
}

function ask(element, words, pressed) {
  const at = performance.now();
  asked.set(element, at);
  words.hidden = false;
  pressed.classList.add('stop');
  setTimeout(() => {
    if (asked.get(element) !== at) return;
    asked.delete(element);
    words.hidden = true;
    pressed.classList.remove('stop');
  }, latest);
}
