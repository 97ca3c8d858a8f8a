// Moves the focus to a message.

import { hold } from './keys.js';

/** Focuses the first input, never a button: a key press meant for something else must not answer. */
export function focusFirst(card) {
  if (card?.matches('[data-type=approval]')) {
    hold(card);
    card.focus();
  } else {
    (card?.querySelector('.field :is(input, textarea, select)') ?? card)?.focus();
  }
}
