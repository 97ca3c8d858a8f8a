// The page of the passkeys: registers one, removes them, and says which decisions want one.

import { register } from './passkey.js';
import { call } from './rpc.js';

const root = document.getElementById('passkeys');
const state = document.getElementById('passkey-state');

async function act(button, what) {
  button.disabled = true;
  state.textContent = 'The browser asks for a passkey.';
  try {
    await what();
    location.reload();
  } catch (why) {
    state.textContent = [why.message, why.hint].filter(Boolean).join(' ');
    button.disabled = false;
  }
}

if (/^[\d.]+$|^\[/.test(location.hostname)) {
  const named = new URL(location.origin);
  named.hostname = 'localhost';
  state.textContent = `Browsers have no passkeys for a page whose address is a number. On the node’s own machine, parley open --address ${named.origin} opens it by a name.`;
}
else if (!isSecureContext) state.textContent = 'Passkeys need https, or a page on this machine. This page has neither.';
else document.getElementById('passkey-add').hidden = false;

root.addEventListener('submit', (e) => {
  e.preventDefault();
  const form = e.target;
  const button = e.submitter;
  if (form.id === 'passkey-add') act(button, () => register(form.elements.name.value.trim()));
  else if (form.id === 'passkey-need') act(button, () => call('require_passkey', { need: form.elements.need.value }));
  else act(button, () => call('remove_passkey', { name: button.value }));
});
