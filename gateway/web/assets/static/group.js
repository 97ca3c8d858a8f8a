// Similar calls as one item: which of them are selected, and what comes and goes while it is open.

import { open } from './item.js';
import { home } from './rpc.js';

const boxes = (card) => [...card.querySelectorAll('.member [name=of]')];
const isLive = (box) => !box.disabled;

/** Group counts the selected calls of a card, and selects several at once. */
export class Group {
  /** @param {Element} card of similar calls that wait */
  constructor(card) {
    this.card = card;
    for (const b of card.querySelectorAll('[data-select]')) {
      b.hidden = false;
      b.addEventListener('click', () => this.select(b.dataset.select === 'all'));
    }
    card.addEventListener('click', (e) => this.clicked(e));
    card.addEventListener('change', (e) => { if (e.target.name === 'of') this.count(); });
    card.addEventListener('keydown', (e) => {
      if (e.key.toLowerCase() !== 'a' || !(e.ctrlKey || e.metaKey) || !e.target.closest('.similar')) return;
      e.preventDefault();
      e.stopPropagation();
      this.select(true);
    });
    card.querySelector('.come').addEventListener('click', () => this.again());
    this.count();
  }

  select(all) {
    for (const b of boxes(this.card).filter(isLive)) b.checked = all;
    this.count();
  }

  /** Selects by a click at a member, and with Shift all from the last one to it. */
  clicked(event) {
    const member = event.target.closest('.member');
    if (!member || event.target.closest('a, summary, button, .seen, .block') || !getSelection().isCollapsed && !event.shiftKey) return;
    const box = member.querySelector('[name=of]');
    if (!isLive(box)) return;
    const all = boxes(this.card).filter(isLive);
    if (event.target !== box) box.checked = !box.checked;
    const [from, to] = [all.indexOf(this.last), all.indexOf(box)].sort((a, b) => a - b);
    if (event.shiftKey && from >= 0) {
      for (const b of all.slice(from, to + 1)) b.checked = box.checked;
      getSelection().removeAllRanges();
    }
    this.last = box;
    this.count();
  }

  /** Returns the names of some of the calls, by their IDs. */
  namesOf(ids) {
    return boxes(this.card).filter((b) => ids.includes(b.value.split(' ')[0])).map((b) => b.dataset.name);
  }

  /** Says how many are selected. */
  count() {
    const all = boxes(this.card).filter(isLive);
    const many = all.filter((b) => b.checked).length;
    this.card.querySelector('.of-all').textContent = `${many} of ${all.length} selected`;
    for (const n of this.card.querySelectorAll('[data-many]')) n.textContent = many;
    for (const b of boxes(this.card)) b.closest('.member').toggleAttribute('data-selected', b.checked);
  }

  /** Draws the calls again, with those that have come. These are not selected. */
  async again() {
    const was = new Map(boxes(this.card).map((b) => [b.value, b.checked]));
    const id = boxes(this.card).find(isLive)?.value.split(' ')[0];
    const { as } = this.card.dataset;
    if (!id) return;
    const query = new URLSearchParams({ ...(as && { as }), like: 'yes', in: new URL(location.href).searchParams.get('in') ?? 'questions' });
    await open(`${home}/forms/${id}?${query}`, { push: false });
    const card = document.querySelector('#alone > .message[data-group]');
    for (const b of card ? boxes(card) : []) b.checked = was.get(b.value) ?? false;
    card?.querySelector('parley-ask').group.count();
  }
}

/** Takes what has ended out of the selection of an open group, and reports whether any call of it still waits. */
export function membersEnded(card, isGone) {
  for (const box of boxes(card).filter(isLive)) {
    const member = box.closest('.member');
    if (!isGone(member.dataset.key)) continue;
    box.checked = false;
    box.disabled = true;
    member.setAttribute('data-gone', '');
  }
  card.querySelector('parley-ask')?.group?.count();
  return boxes(card).some(isLive);
}

/** Says how many similar calls have come since the group was drawn, by the keys of its row. */
export function membersCome(card, keys) {
  const known = new Set([...card.querySelectorAll('.member')].map((m) => m.dataset.key));
  const come = keys.filter((k) => !known.has(k)).length;
  const button = card.querySelector('.come');
  button.hidden = come === 0;
  button.textContent = `+${come} new`;
}

/** Returns the keys of the calls of a group that wait. */
export const membersOf = (card) => boxes(card).filter(isLive).map((b) => b.closest('.member').dataset.key);
