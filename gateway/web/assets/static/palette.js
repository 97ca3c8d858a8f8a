// The palette: everything that the page leads to, by a few letters. And the list of keys.

import { open } from './item.js';
import { rows } from './list.js';

const most = 12; // entries shown at once

const keys = [
  ['j / k', 'next or previous message'], ['↵', 'open the message'], ['Esc', 'back to the list'], ['/', 'search'],
  ['a', 'allow the call once'], ['d', 'deny it, with a reason'], ['e', 'done, or edit the input of a call'], ['s', 'snooze for 4 hours'], ['x', 'pick the message; a, d, e and s are for all that are picked'], ['u', 'mark as unread'], ['Ctrl ↵', 'send the form'], ['Ctrl K', 'go to anything'], ['?', 'these keys'],
];

function dialog(name, label) {
  const d = document.createElement('dialog');
  d.className = name;
  d.setAttribute('aria-label', label);
  const back = document.activeElement;
  d.addEventListener('close', () => {
    d.remove();
    if (document.activeElement === document.body) back?.focus();
  });
  document.body.append(d);
  return d;
}

export function showKeys() {
  const d = dialog('keys', 'Keys');
  d.innerHTML = '<form method="dialog"><h2>Keys</h2><dl></dl><button class="primary" autofocus>Close</button></form>';
  for (const [key, does] of keys) {
    const line = document.createElement('div');
    const [dt, dd] = [document.createElement('dt'), document.createElement('dd')];
    dt.append(Object.assign(document.createElement('kbd'), { textContent: key }));
    dd.textContent = does;
    line.append(dt, dd);
    d.querySelector('dl').append(line);
  }
  d.showModal();
}

/** Returns what the palette offers: the links of the left pane, and the messages of the list. */
function entries() {
  const links = [...document.querySelectorAll('.views a, .of-agents a, .foot a')].map((a) => ({
    text: a.querySelector('.name')?.textContent ?? a.firstChild.textContent.trim(), kind: a.closest('.of-agents') ? 'agent' : '', go: () => location.assign(a.href),
  }));
  const messages = rows().map((r) => ({
    text: r.querySelector('.what').textContent, kind: r.querySelector('.from').textContent, go: () => open(r.firstElementChild.href),
  }));
  return [...links, ...messages, { text: 'Keys', kind: '?', go: showKeys }];
}

export function showPalette() {
  const d = dialog('palette', 'Go to');
  d.innerHTML = `<input role="combobox" aria-expanded="true" aria-controls="palette-list" aria-autocomplete="list" aria-label="Go to" placeholder="Go to an agent or a message" autocomplete="off" spellcheck="false">
    <ul id="palette-list" role="listbox" aria-label="Found"></ul>`;
  const [input, list] = [d.querySelector('input'), d.querySelector('ul')];
  const all = entries();
  let found = [];
  let at = 0;
  function draw() {
    const words = input.value.toLowerCase().split(/\s+/);
    found = all.filter((e) => words.every((w) => `${e.text} ${e.kind}`.toLowerCase().includes(w))).slice(0, most);
    at = Math.min(at, Math.max(found.length - 1, 0));
    list.replaceChildren(...found.map((e, i) => {
      const li = document.createElement('li');
      li.id = `palette-${i}`;
      li.role = 'option';
      li.setAttribute('aria-selected', String(i === at));
      const [text, kind] = [document.createElement('bdi'), document.createElement('span')];
      text.textContent = e.text;
      kind.textContent = e.kind;
      kind.className = 'muted';
      li.append(text, kind);
      li.addEventListener('click', () => go(e));
      return li;
    }));
    if (found.length > 0) input.setAttribute('aria-activedescendant', `palette-${at}`);
    else input.removeAttribute('aria-activedescendant');
  }
  function go(entry) {
    d.close();
    entry.go();
  }
  input.addEventListener('input', () => { at = 0; draw(); });
  input.addEventListener('keydown', (e) => {
    const by = { ArrowDown: 1, ArrowUp: -1 }[e.key];
    if (by) {
      e.preventDefault();
      at = (at + by + found.length) % Math.max(found.length, 1);
      draw();
    } else if (e.key === 'Enter' && !e.isComposing && found[at]) {
      e.preventDefault();
      go(found[at]);
    }
  });
  draw();
  d.showModal();
}
