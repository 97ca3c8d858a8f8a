// Tells when no button of a pointer is down: what is drawn anew under one loses its click.

let isDown = false;
let waiting = [];

function up() {
  isDown = false;
  const all = waiting;
  waiting = [];
  setTimeout(() => { for (const go of all) go(); }); // after the click
}

/** Waits until no button of a pointer is down. */
export const released = () => (isDown ? new Promise((go) => { waiting.push(go); }) : Promise.resolve());

addEventListener('pointerdown', () => { isDown = true; }, true);
for (const end of ['pointerup', 'pointercancel']) addEventListener(end, up, true);
addEventListener('blur', up); // of the window
addEventListener('pointermove', (e) => { if (isDown && !e.buttons) up(); }, { capture: true, passive: true }); // it was released elsewhere
