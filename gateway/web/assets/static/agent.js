// Keeps the list of agents and an agent's page current. Its buttons revoke grants, and remove names and standing rules.

import { announce } from './cards.js';
import { renew } from './renew.js';
import { call, page } from './rpc.js';
import { visible } from './visible.js';

const calls = {
  revoke: (agent, grant) => ['revoke', { as: agent, grant }],
  remove: (agent, name) => ['remove_name', { as: agent, name }],
  end: (agent, rule) => ['remove_rule', { agent, rule }],
};
const said = { revoke: 'Revoked', remove: 'The name is removed', end: 'The rule has ended' };
const pause = 1000; // between two updates

const shown = () => document.getElementById('agent') ?? document.getElementById('agents');

/** Updates the page after changes to agents. Without an argument any agent may have changed. */
export function agentsChanged(what) {
  const { id } = shown().dataset;
  if (!what || !id || what.many || what.agents.includes(id)) again();
}

let wanted = false;
let looks = false;

async function again() {
  wanted = true;
  if (looks) return;
  looks = true;
  while (wanted) {
    wanted = false;
    await shownAgain();
    await look();
    await new Promise((resolve) => { setTimeout(resolve, pause); });
  }
  looks = false;
}

/** Waits until the page is visible. */
function shownAgain() {
  if (!document.hidden) return undefined;
  return new Promise((resolve) => { document.addEventListener('visibilitychange', resolve, { once: true }); });
}

async function look() {
  try {
    const next = (await page(location.pathname + location.search, { base: '' })).getElementById(shown().id);
    const failure = shown().querySelector(':scope > .failure');
    if (!next) return;
    if (failure) next.querySelector(':scope > .failure').textContent = failure.textContent;
    renew(shown(), next);
  } catch {
    // the stream of events updates the page once the node is back
  }
}

async function pressed(button) {
  const agent = shown().dataset.agent;
  const fail = (why) => { shown().querySelector(':scope > .failure').textContent = visible(why); };
  fail('');
  button.disabled = true;
  try {
    await call(...calls[button.name](agent, button.value));
  } catch (refused) {
    button.disabled = false;
    fail(refused.message);
    return;
  }
  await look();
  announce(said[button.name]);
  document.getElementById('main').focus();
}

export function startAgents() {
  document.getElementById('main').addEventListener('click', (e) => {
    const button = e.target.closest('#agent button[name]');
    if (button && Object.hasOwn(calls, button.name)) pressed(button);
  });
}
