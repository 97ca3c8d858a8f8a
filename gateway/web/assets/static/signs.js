// Sends plain forms that let calls run which nobody decides on, and signs each step of them that is refused without a passkey.

import { send } from './rpc.js';
import { warn } from './toast.js';

const signs = ['add', 'resume', 'resume-all', 'set-policy']; // the buttons of such forms

async function submit(form, button) {
  const body = new FormData(form, button);
  button.disabled = true;
  try {
    for (let shown; !shown;) {
      try {
        shown = await send(form.action, body); // what was done before a step that is refused stays so
      } catch (why) {
        if (why.code !== 'PASSKEY_REQUIRED' || !why.fields.act) throw why;
        const { signature } = await import('./passkey.js');
        body.set('passkey', JSON.stringify(await signature({ act: why.fields.act })));
        continue;
      }
      location.assign(shown);
    }
  } catch (why) {
    warn([why.message, why.hint].filter(Boolean).join(' '));
    button.disabled = false;
  }
}

document.addEventListener('submit', (e) => {
  if (e.defaultPrevented || !signs.includes(e.submitter?.name)) return;
  e.preventDefault();
  submit(e.target, e.submitter);
});
