// Shows an agent's mail: newest last, and older messages on demand.

import { announce, isTyping, putCard, tellTimes } from './cards.js';
import { page } from './rpc.js';

const most = 600; // messages in the page at once

const isAtEnd = () => innerHeight + scrollY >= document.documentElement.scrollHeight - 120;
const toEnd = () => scrollTo({ top: document.documentElement.scrollHeight, behavior: 'instant' });

export function startInbox(list) {
  const older = document.getElementById('older');
  if (!location.search.includes('before=')) toEnd();
  if (!older) return;
  older.addEventListener('click', (e) => { e.preventDefault(); loadOlder(list, older); });
  const eye = new IntersectionObserver(async (seen) => {
    if (!seen.at(-1).isIntersecting || document.documentElement.scrollHeight < innerHeight * 1.5) return;
    await loadOlder(list, older);
    eye.unobserve(older);
    if (older.isConnected) eye.observe(older); // observes the new position
  });
  eye.observe(older);
}

async function loadOlder(list, older) {
  if (older.dataset.loading) return;
  older.dataset.loading = 'yes';
  try {
    const doc = await page(older.href, { base: '' });
    const cards = [...doc.querySelectorAll('#stream > li')].filter((c) => !document.getElementById(c.id)).map((c) => document.adoptNode(c));
    const before = document.documentElement.scrollHeight;
    const at = scrollY;
    list.prepend(...cards);
    tellTimes(list);
    scrollTo({ top: at + document.documentElement.scrollHeight - before, behavior: 'instant' });
    const next = doc.getElementById('older');
    if (next) older.href = next.href;
    else older.parentElement.remove();
  } catch {
    announce('The older messages cannot be read now.');
  }
  delete older.dataset.loading;
}

export function mailChanged(list, what) {
  if (what.reload) {
    if (isTyping()) announce('Much has happened: reload the page once you are done.');
    else location.reload();
    return;
  }
  const stay = isAtEnd();
  let come = 0;
  for (const m of what.messages) if (putCard(list, m.number, m.html)) come++;
  if (come) announce(come === 1 ? 'A new message' : `${come} new messages`);
  if (come && stay && !isTyping()) {
    toEnd();
    prune(list);
  }
}

function prune(list) {
  let older = document.getElementById('older');
  while (list.childElementCount > most && !list.firstElementChild.contains(document.activeElement)) {
    list.firstElementChild.remove();
    const before = new URL(older?.href ?? '/', location.href);
    if (document.body.dataset.as) before.searchParams.set('as', document.body.dataset.as);
    before.searchParams.set('before', list.firstElementChild.dataset.number);
    if (older) older.href = before.href;
  }
}
