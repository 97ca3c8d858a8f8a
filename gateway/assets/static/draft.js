// What was typed into a form and not sent yet. It outlives the page, but never a secret, and not for ever.

const prefix = 'parley.draft.';
const keep = 30 * 24 * 3600 * 1000;

const key = (card) => prefix + card.dataset.as + '/' + card.dataset.id;

function store(fn) {
  try {
    return fn(localStorage);
  } catch {
    return null; // it is off or full: drafts then live as long as the page
  }
}

export const saveDraft = (card, fields) => store((s) => s.setItem(key(card), JSON.stringify({ at: Date.now(), fields })));
export const forgetDraft = (card) => store((s) => s.removeItem(key(card)));

export function readDraft(card) {
  return store((s) => JSON.parse(s.getItem(key(card)))?.fields) ?? null;
}

/** Forgets drafts that nobody has touched for long. */
export function forgetOldDrafts() {
  store((s) => {
    for (const k of Object.keys(s)) {
      if (k.startsWith(prefix) && !(JSON.parse(s.getItem(k))?.at > Date.now() - keep)) s.removeItem(k);
    }
  });
}
