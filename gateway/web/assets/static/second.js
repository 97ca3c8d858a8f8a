// A vote of who has voted as another agent already is an act of its own: a box to be ticked, before the buttons.

/** Reports whether a form may be sent, and shows its box for a second vote otherwise. */
export function mayVote(form) {
  const box = form.elements.namedItem('second');
  if (!box || box.checked) return true;
  box.closest('details')?.setAttribute('open', '');
  box.focus();
  return box.reportValidity();
}

/** Returns the part of a call that takes a second vote; none if that was not asked for. */
export const secondOf = (form) => (form.elements.namedItem('second')?.checked ? { secondVote: true } : {});

/** Takes the boxes of a new drawing of the same form. One that is there already stays as it is. */
export function updateSecond(old, next) {
  const [had, now] = [old, next].map((root) => [...root.querySelectorAll('.second')]);
  had.forEach((box, i) => { if (now[i] && Boolean(box.firstElementChild) !== Boolean(now[i].firstElementChild)) box.replaceWith(now[i]); });
}
