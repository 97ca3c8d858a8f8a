// What was typed into a form and not sent yet. It outlives the page, but never a secret, and not for ever.

const prefix = 'parley.draft.';
const keep = 30 * 24 * 3600 * 1000;

function store(fn) {
  try {
    return fn(localStorage);
  } catch {
    return null; // it is off or full: drafts then live as long as the page
  }
}

/** What a draft is called: for whom, and of which form. */
export const draftOf = (as, id) => `${as}/${id}`;

export const saveDraft = (name, fields) => store((s) => s.setItem(prefix + name, JSON.stringify({ at: Date.now(), fields })));
export const forgetDraft = (name) => store((s) => s.removeItem(prefix + name));
export const readDraft = (name) => store((s) => JSON.parse(s.getItem(prefix + name))?.fields) ?? null;

/** Forgets drafts that nobody has touched for long. */
export function forgetOldDrafts() {
  store((s) => {
    for (const k of Object.keys(s)) {
      if (k.startsWith(prefix) && !(JSON.parse(s.getItem(k))?.at > Date.now() - keep)) s.removeItem(k);
    }
  });
}
