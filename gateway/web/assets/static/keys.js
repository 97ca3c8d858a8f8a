// The keys of an approval: A allows once, D gives a reason and denies. They are for the approval that has the focus.

const pause = 700; // milliseconds that an approval which came by itself takes no keys, so that none is for another one

/** Holds the keys of an approval back, since the person may not have seen it yet. */
export function hold(card) {
  card.removeAttribute('data-keys');
  setTimeout(() => card.setAttribute('data-keys', ''), pause);
}

const ofWriting = 'input, textarea, select, [contenteditable]';

/** Handles a key. */
function pressed(event) {
  const at = document.activeElement;
  const card = at?.closest('li[data-type=approval][data-waits]');
  if (!card?.hasAttribute('data-keys') || event.repeat || event.isComposing || event.ctrlKey || event.metaKey || event.altKey) return;
  const reason = card.querySelector('.why textarea');
  if (at === reason && event.key === 'Enter' && !event.shiftKey) {
    event.preventDefault();
    card.querySelector('button[value=deny]')?.click();
  }
  if (at.matches(ofWriting)) return;
  const key = event.key.toLowerCase();
  if (key === 'a') {
    event.preventDefault();
    card.querySelector('button[value=once]')?.click();
  } else if (key === 'd' && reason) {
    event.preventDefault();
    reason.closest('details').open = true;
    document.addEventListener('keyup', () => reason.focus(), { once: true }); // the letter is not part of the reason
  }
}

export function startKeys() {
  document.addEventListener('keydown', pressed);
}
