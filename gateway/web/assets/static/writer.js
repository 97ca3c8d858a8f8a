// Completes the names of what is held in the text of a message, behind an @.

import { fitsText, marked } from './commands.js';
import { Completion } from './completion.js';
import { call } from './rpc.js';

const begun = new WeakSet(); // the texts that have a completion

/** Gives the text of a message its completion once it has the focus: a reply comes with each message that is opened. */
function begin(text) {
  if (begun.has(text)) return;
  begun.add(text);
  let mark;
  const find = async () => {
    const here = mark = text.selectionStart === text.selectionEnd && marked(text.value.slice(0, text.selectionStart));
    if (!here) return [];
    const { candidates } = await call('complete', { as: text.closest('[data-as]').dataset.as, of: 'names', prefix: here.text });
    return candidates.filter((c) => fitsText(c.word, here.hasEdge)); // meanwhile more may have been typed
  };
  const take = ({ word }) => {
    text.setRangeText(`${word} `, mark.start, mark.start + mark.text.length, 'end');
    text.dispatchEvent(new Event('input', { bubbles: true }));
  };
  new Completion(text, find, take);
}

export function startWriters() {
  const look = (at) => { if (at?.matches?.('.writer textarea')) begin(at); };
  document.addEventListener('focusin', (event) => look(event.target));
  look(document.activeElement);
}
