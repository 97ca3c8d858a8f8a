// The palette: everything that the page does and leads to, and what the node finds, by a few letters. And the list of keys.

import { pickAll } from './bulk.js';
import { composing } from './composing.js';
import { dialog } from './dialog.js';
import { open, openCard, press, read } from './item.js';
import { linkOf, rows } from './list.js';
import { page } from './rpc.js';

const most = 60; // entries shown at once

const keys = [
  ['A', 'allow the call once'], ['Shift A', 'always allow, by the rule that is chosen'], ['D', 'deny or decline, with a reason; Enter sends it'], ['E', 'edit the call, or put a message away'], ['R', 'ask back'], ['M', 'allow more: later calls too, within limits'], ['S', 'snooze for 4 hours'],
  ['J, K', 'next or previous message'], ['Enter', 'open'], ['N, P', 'next or previous change'], ['↓, ↑', 'from there, the next or previous line'], ['X', 'select; A, D, E and S are for all that are selected'], ['Shift J, Shift K', 'select a range'], ['Ctrl A', 'select the group'],
  ['1 – 9', 'choose an option of a form'], ['Ctrl Enter', 'send what is typed'], ['/', 'search'], ['Ctrl K', 'commands, agents and messages'], ['G, then N M A H R', 'go to Needs you, Mail, Agents, History, Rules'], ['U', 'mark as unread'], ['C', 'write a message, or comment on a changed line'], ['Shift C', 'comment on the whole file'], ['Esc', 'close, or back to the list'], ['?', 'these keys'],
];

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
  d.scrollTop = 0; // the button that closes it has the focus, at its end
}

const themes = { '': 'as the system', light: 'light', dark: 'dark' };

/** Sets the theme of all pages; '' is the system's. theme.js sets it when a page is loaded. */
function setTheme(theme) {
  document.documentElement.dataset.theme = theme;
  try {
    if (theme) localStorage.setItem('parley.theme', theme);
    else localStorage.removeItem('parley.theme');
  } catch { /* it is the theme of this page */ }
}

/** Returns the commands about the open message: those of its buttons. */
function ofCard() {
  const card = openCard();
  const all = [];
  const add = (text, kind, button) => { if (button && !button.disabled) all.push({ text, kind, go: () => button.click() }); };
  const ask = card?.querySelector('form.ask');
  const about = card?.querySelector('.heading')?.textContent ?? '';
  for (const [value, text] of Object.entries({ once: 'Allow once', always: 'Always allow', deny: 'Deny', never: 'Never allow' })) {
    const button = card?.matches('[data-type=approval]') && ask?.querySelector(`button[value=${value}]:not(.edit *)`);
    const rule = [...(button ? button.querySelectorAll('.describe') : [])].map((d) => d.textContent).filter(Boolean).join(', ');
    if (button) add(text, rule || about, button);
  }
  const opens = (text, details) => {
    if (details) all.push({ text, kind: about, go: () => { details.open = true; details.querySelector('textarea, input')?.focus(); } });
  };
  opens('Deny with a reason', ask?.querySelector('.why'));
  opens('Edit the input', ask?.querySelector('.edit'));
  opens('Ask back', ask?.querySelector('.asks'));
  opens('Allow more', ask?.querySelector('.leave'));
  for (const b of card?.querySelectorAll('.tools .menu:not(.more-of-it) button') ?? []) add(`Snooze for ${b.textContent}`, about, b); // the other menu has two of them again
  for (const b of card?.querySelectorAll('.tools button.quiet') ?? []) add(b.textContent, about, b);
  if (card) all.push({ text: 'Mark as unread', kind: about, go: () => read(undefined, true) });
  return all;
}

/** Returns the commands about the list, and the settings. */
function ofPage() {
  const groups = [...document.querySelectorAll('.groups a:not([aria-current])')].map((a) => ({ text: `Group by ${a.textContent.toLowerCase()}`, kind: 'list', go: () => location.assign(a.href) }));
  const filters = [...document.querySelectorAll('.filter option:not([value=""])')].map((o) => ({
    text: `Only ${o.textContent}`, kind: 'filter', go: () => { o.selected = true; o.closest('form').requestSubmit(); },
  }));
  for (const a of document.querySelectorAll('.decisions .panel a:not([aria-current], [download])')) filters.push({ text: `${a.closest('details').querySelector('summary').firstChild.textContent.trim()} ${a.textContent}`, kind: 'filter', go: () => a.click() });
  const settings = Object.entries(themes).map(([theme, words]) => ({ text: `Theme: ${words}`, kind: 'setting', go: () => setTheme(theme) }));
  const notify = document.getElementById('notify');
  if (notify && !notify.hidden) settings.push({ text: notify.getAttribute('aria-pressed') === 'true' ? 'Notify me no more' : 'Notify me', kind: 'setting', go: () => notify.click() });
  if (rows().length) groups.push({ text: 'Select all', kind: 'list', go: pickAll });
  return [...groups, ...filters, ...settings];
}

const groups = ['Do', 'Go to', 'Needs you', 'Found in mail and decisions', 'On this page'];

/** Returns what the page itself has: commands, the links of the left pane, and the messages of the list. */
function entries() {
  const links = [...document.querySelectorAll('.views a, .of-agents a, .foot a')].map((a) => ({
    in: 1, text: a.querySelector('.name')?.textContent ?? a.ariaLabel ?? a.textContent.trim(), kind: a.closest('.of-agents') ? 'agent' : '', href: a.href, go: () => location.assign(a.href),
  }));
  const isOpen = Boolean(document.querySelector('#list[data-needs=yes]'));
  const messages = rows().map((r) => ({
    in: isOpen ? 2 : 3, isRow: true, text: r.querySelector('.what').textContent, kind: r.querySelector('.from').textContent, href: linkOf(r).href, go: () => open(linkOf(r).href),
  }));
  const acts = ofCard().map((e) => ({ ...e, byWord: true })); // who types the name of an agent or a command looks for it, and decides nothing
  const more = [...ofPage(), { text: 'Keys', kind: '?', go: showKeys }].map((e) => ({ ...e, in: 4 }));
  return [...acts.map((e) => ({ ...e, in: 0 })), ...links, ...messages, ...more];
}

/** Returns what the node finds for a text: see find.go. */
async function found(text) {
  const doc = await page(`/find?pane=item&q=${encodeURIComponent(text)}`);
  return [...doc.querySelectorAll('#found section')].flatMap((s) => [...s.querySelectorAll('a')].map((a) => ({
    in: Math.max(groups.indexOf(s.ariaLabel), 0), text: a.querySelector('bdi').textContent, kind: a.querySelector('span')?.textContent ?? '', href: a.href, drawn: a, go: () => location.assign(a.href),
  })));
}

/** Has the menu of the settings choose the theme. */
export function startTheme(menu) {
  if (!menu) return;
  menu.disabled = false;
  menu.value = document.documentElement.dataset.theme ?? '';
  menu.addEventListener('change', () => setTheme(menu.value));
}

const isMac = /Mac|iPhone|iPad/.test(navigator.platform);

/** Has a button show the palette, and the field for searching by a click. By a key that searches the mail. */
export function startPalette(button) {
  button.hidden = false;
  button.addEventListener('click', showPalette);
  const search = document.getElementById('search');
  search.placeholder = 'Search or jump to';
  search.parentElement.querySelector('kbd').textContent = isMac ? '⌘ K' : 'Ctrl K';
  search.parentElement.addEventListener('pointerdown', (e) => {
    if (e.button) return;
    e.preventDefault();
    showPalette();
  });
}

export function showPalette() {
  const d = dialog('palette', 'Search or jump to');
  d.innerHTML = `<input role="combobox" aria-expanded="true" aria-controls="palette-list" aria-autocomplete="list" aria-label="Search or jump to" placeholder="Search or jump to" autocomplete="off" spellcheck="false">
    <div id="palette-list" role="listbox" aria-label="Results"></div>
    <p class="foot-line" aria-hidden="true"><span><kbd>↑ ↓</kbd> move</span><span><kbd>↵</kbd> open</span><span class="grow"><kbd>?</kbd> all keys</span><span><kbd>Esc</kbd> close</span></p>`;
  const [input, list] = [d.querySelector('input'), d.querySelector('div')];
  const own = entries();
  let theirs = []; // what the node has found
  let shown = [];
  let at = 0;
  function draw(keep) {
    const words = input.value.toLowerCase().split(/\s+/);
    const fit = (e) => words.every((w) => (e.byWord ? e.text : `${e.text} ${e.kind}`).toLowerCase().includes(w));
    const mine = own.filter(fit).slice(0, most);
    const has = new Set(mine.map((e) => e.href && new URL(e.href).pathname + (e.isRow ? '' : new URL(e.href).search)));
    const isNew = ({ href }) => { const u = new URL(href); return !has.has(u.pathname + u.search) && !(u.pathname.includes('/forms/') && has.has(u.pathname)); };
    shown = [...mine, ...theirs.filter(isNew)];
    shown = groups.flatMap((_, g) => shown.filter((e) => e.in === g));
    const isMarked = keep || input.value.trim() ? (e) => e === keep || keep?.href && e.href === keep.href : (e) => e.in > 0; // Enter alone does nothing
    at = Math.max(shown.findIndex(isMarked), 0);
    list.replaceChildren(...groups.flatMap((words, g) => {
      const some = shown.filter((e) => e.in === g);
      if (!some.length) return [];
      const group = document.createElement('ul');
      group.setAttribute('role', 'group');
      group.ariaLabel = words;
      group.append(...some.map(option));
      return [group];
    }));
    mark();
  }
  function option(e) {
    const li = document.createElement('li');
    li.id = `palette-${shown.indexOf(e)}`;
    li.role = 'option';
    if (e.drawn) li.append(...document.importNode(e.drawn, true).childNodes);
    else {
      const [text, kind] = [document.createElement('bdi'), document.createElement('span')];
      text.textContent = e.text;
      kind.textContent = e.kind;
      kind.className = 'muted';
      li.append(text, kind);
    }
    li.addEventListener('click', () => go(e));
    return li;
  }
  /** Marks the entry that Enter opens. */
  function mark() {
    for (const li of list.querySelectorAll('li')) li.setAttribute('aria-selected', String(li.id === `palette-${at}`));
    if (shown.length > 0) input.setAttribute('aria-activedescendant', `palette-${at}`);
    else input.removeAttribute('aria-activedescendant');
    document.getElementById(`palette-${at}`)?.scrollIntoView({ block: 'nearest' });
  }
  function go(entry) {
    d.close();
    entry.go();
  }
  let asked = '';
  let asks = false;
  /** Has the node find what is typed, one text after the other. What it finds moves no mark. */
  async function look() {
    if (asks) return;
    asks = true;
    while (d.open && asked !== input.value.trim()) {
      asked = input.value.trim();
      const next = asked ? await found(asked).catch(() => []) : []; // without the node there is what the page has
      if (asked !== input.value.trim()) continue; // more was typed
      theirs = next;
      draw(shown[at]);
    }
    asks = false;
  }
  input.addEventListener('input', () => {
    theirs = [];
    draw();
    look();
  });
  input.addEventListener('keydown', (e) => {
    if (composing(e)) return;
    const by = { ArrowDown: 1, ArrowUp: -1 }[e.key];
    if (by) {
      e.preventDefault();
      at = (at + by + shown.length) % Math.max(shown.length, 1);
      mark();
    } else if (e.key === 'Enter' && shown[at]) {
      e.preventDefault();
      go(shown[at]);
    } else if (e.key === '?' && !input.value) {
      e.preventDefault();
      d.close();
      showKeys();
    }
  });
  draw();
  d.showModal();
}
