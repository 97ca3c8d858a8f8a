// An agent's page: what it gave is taken back, and its standing rules end, at the press of a button.

import { announce, tellTimes } from './cards.js';
import { call, page } from './rpc.js';
import { visible } from './visible.js';

const calls = {
  revoke: (agent, grant) => ['revoke', { as: agent, grant }],
  end: (agent, rule) => ['remove_rule', { agent, rule }],
};
const said = { revoke: 'Revoked', end: 'The rule has ended' };

const dossier = () => document.getElementById('dossier');

/** Without this script the buttons would do nothing: they are shown by it. */
function showButtons() {
  for (const b of dossier().querySelectorAll('button[hidden]')) b.hidden = false;
}

async function pressed(button) {
  const failure = dossier().querySelector('.failure');
  failure.textContent = '';
  button.disabled = true;
  try {
    await call(...calls[button.name](dossier().dataset.agent, button.value));
    dossier().replaceWith(document.adoptNode((await page(location.href)).getElementById('dossier')));
  } catch (refused) {
    button.disabled = false;
    failure.textContent = visible(refused.message);
    return;
  }
  tellTimes(dossier());
  showButtons();
  announce(said[button.name]);
  document.getElementById('main').focus();
}

showButtons();
document.getElementById('main').addEventListener('click', (e) => {
  const button = e.target.closest('button[name]');
  if (button && Object.hasOwn(calls, button.name)) pressed(button);
});
