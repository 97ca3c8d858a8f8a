// Stores the input of forms that were not sent yet, without secrets, for 30 days.

const prefix = 'parley.draft.';
const keep = 30 * 24 * 3600 * 1000;

function store(fn) {
  try {
    return fn(localStorage);
  } catch {
    return null; // storage is off or full: drafts end with the page
  }
}

/** Returns the name of the draft of an agent's form. */
export const draftOf = (as, id) => `${as}/${id}`;

export const saveDraft = (name, fields) => store((s) => s.setItem(prefix + name, JSON.stringify({ at: Date.now(), fields })));
export const forgetDraft = (name) => store((s) => s.removeItem(prefix + name));
export const readDraft = (name) => store((s) => JSON.parse(s.getItem(prefix + name))?.fields) ?? null;

/** Deletes old drafts. */
export function forgetOldDrafts() {
  store((s) => {
    for (const k of Object.keys(s)) {
      if (k.startsWith(prefix) && !(JSON.parse(s.getItem(k))?.at > Date.now() - keep)) s.removeItem(k);
    }
  });
}
