// Keeps the agents in the left pane, the list of agents and an agent's page current. Its buttons stop a run, revoke grants, and remove names and
// standing rules.

import { announce } from './cards.js';
import { renew } from './renew.js';
import { call, page } from './rpc.js';
import { visible } from './visible.js';

const calls = {
  stop: (agent, id) => ['hold_agent', { agentId: id, hold: true }],
  start: (agent, id) => ['hold_agent', { agentId: id, hold: false }],
  revoke: (agent, grant) => ['revoke', { as: agent, grant }],
  remove: (agent, name) => ['remove_name', { as: agent, name }],
  end: (agent, rule) => ['remove_rule', { agent, rule }],
  pause: (agent, rule) => ['pause_rule', { agent, rule }],
  resume: (agent, rule) => ['pause_rule', { agent, rule, resume: true }],
  mandate: (agent, mandate) => ['end_mandate', { agent, mandate }],
  limit: (agent, rule, panel) => ['limit_rule', { agent, rule, until: after(panel) }],
  away: (agent, _, panel) => ['set_away', { as: agent, until: after(panel), to: panel.querySelector('input').value.trim() }],
  back: (agent) => ['set_away', { as: agent }],
};
const said = { stop: 'Stopped', start: 'Started', revoke: 'Revoked', remove: 'The name is removed', end: 'The rule is removed', mandate: 'The mandate has ended', limit: 'The rule has an end', pause: 'The rule is paused: its calls are asked about', resume: 'The rule decides again', away: 'The absence is set', back: 'The absence has ended', attention: 'Set' };
const after = (panel) => new Date(Date.now() + parseInt(panel.querySelector('select').value, 10) * 3_600_000).toISOString();
const pause = 1000; // between two updates
const pauseOfOutput = 250;
const nearEnd = 60; // pixels within which the page follows the end

const shown = () => document.getElementById('agent') ?? document.getElementById('agents');
const activity = () => document.getElementById('activity');

/** Returns the name of the agent whose output the page shows; undefined if it shows none. */
export const outputOf = () => (activity()?.dataset.newest ? shown().dataset.agent : undefined);

/** Updates the page after changes to agents. Without an argument any agent may have changed. */
export function agentsChanged(what) {
  const { id } = shown().dataset;
  if (!what || !id || what.many || what.agents.includes(id)) again(pause);
}

/** The beginning of the day where the person is: the node counts the decisions of that. */
const today = () => new Date(new Date().setHours(0, 0, 0, 0)).toISOString();
const dayShown = () => document.querySelector('.agents caption')?.dataset.day;

let asked; // the day that the node was asked for: where the clocks are too far apart, it keeps to its own
let rests = pause; // milliseconds until numbers that the node has not counted yet are looked for again: longer each time

/** Looks again at a list of agents that lacks numbers, or has those of another day. */
function checkNumbers() {
  const isOfDay = today() === asked || Date.parse(dayShown()) === Date.parse(today());
  if (!isOfDay) again(pause);
  else if (!document.querySelector('.agents caption[data-behind]')) rests = pause;
  else if (!checkNumbers.waits) checkNumbers.waits = setTimeout(() => { checkNumbers.waits = 0; again(pause); }, rests = Math.min(rests * 1.5, 20_000));
}

/** Updates the page if the time of an absence that it shows has come, or another day. No event tells of that. */
export function checkAbsences() {
  if (dayShown()) checkNumbers();
  const now = Date.now();
  if (![...document.querySelectorAll('[data-until]')].some((e) => Date.parse(e.dataset.until) <= now)) return;
  leftChanged();
  if (shown()) again(pause);
}

/** Updates the page after output of an agent's program. */
export function outputChanged(what) {
  if (what.agent === shown()?.dataset.id) again(pauseOfOutput);
}

let wanted = 0; // the pause after the next update; 0 if none is wanted
let looks = false;

async function again(after) {
  wanted = Math.max(wanted, after);
  if (looks) return;
  looks = true;
  while (wanted) {
    const rest = wanted;
    wanted = 0;
    await shownAgain();
    await look();
    await new Promise((resolve) => { setTimeout(resolve, rest); });
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
    const item = new URL(location);
    item.searchParams.set('pane', 'item');
    if (dayShown()) item.searchParams.set('today', asked = today());
    const next = (await page(item.pathname + item.search, { base: '' })).getElementById(shown().id);
    const failure = shown().querySelector(':scope > .failure');
    if (!next) return;
    if (failure) next.querySelector(':scope > .failure').textContent = failure.textContent;
    const typing = shown().querySelector('.policy:has(details[open])'); // what is typed there stays
    if (typing) next.querySelector('.policy')?.replaceWith(typing.cloneNode(true));
    const follows = isAtEnd();
    if (activity()) keep(next, follows);
    renew(shown(), next);
    if (follows) toEnd();
    if (dayShown()) checkNumbers();
  } catch {
    // the stream of events updates the page once the node is back
  }
}

/** Replaces parts of the next activity with those that stay: open questions, and all of it while the person reads above the end. */
function keep(next, follows) {
  const list = next.querySelector('#activity');
  if (!follows) {
    const more = list.lastElementChild?.textContent !== activity().lastElementChild?.textContent;
    if (more) offerEnd(true);
    const section = document.querySelector('#agent > [data-part=activity]');
    list.closest('section').replaceWith(section.cloneNode(true));
    return;
  }
  for (const old of activity().querySelectorAll(':scope > [data-keep]')) {
    const same = [...list.children].find((n) => n.dataset.part === old.dataset.part && (n.dataset.keep === old.dataset.keep || n.dataset.keep && old.querySelector('parley-ask')?.isTyped));
    same?.replaceWith(old.cloneNode(true));
  }
}

/** Returns what scrolls the activity. */
function scroller() {
  for (let e = activity(); e; e = e.parentElement) {
    if (e.scrollHeight > e.clientHeight && /auto|scroll/.test(getComputedStyle(e).overflowY)) return e;
  }
  return document.scrollingElement;
}

function isAtEnd() {
  if (!activity()?.dataset.newest) return false;
  const s = scroller();
  return s.scrollHeight - s.scrollTop - s.clientHeight < nearEnd;
}

function toEnd() {
  const s = scroller();
  s.scrollTop = s.scrollHeight;
  offerEnd(false);
}

function offerEnd(is) {
  const button = document.getElementById('follow');
  if (button) button.hidden = !is;
}

let leftWanted = false;
let leftLooks = false;

/** Updates the agents in the left pane. */
export async function leftChanged() {
  leftWanted = true;
  const pane = document.getElementById('left-agents');
  if (leftLooks || !pane) return;
  leftLooks = true;
  while (leftWanted) {
    leftWanted = false;
    try {
      const doc = await page('/agents?pane=left');
      const next = doc.getElementById('left-agents');
      if (next) renew(document.getElementById('left-agents'), next);
      for (const id of ['unread', 'agent-count']) document.getElementById(id).replaceWith(document.adoptNode(doc.getElementById(id)));
    } catch {
      // the stream of events updates it once the node is back
    }
    await new Promise((resolve) => { setTimeout(resolve, pause); });
  }
  leftLooks = false;
}

async function pressed(button) {
  const agent = shown().dataset.agent;
  const fail = (why) => { shown().querySelector(':scope > .failure').textContent = visible(why); };
  fail('');
  button.disabled = true;
  try {
    await call(...calls[button.name](agent, button.value, button.parentElement));
  } catch (refused) {
    button.disabled = false;
    fail(refused.message);
    return;
  }
  if (button.name === 'stop' && outputOf() !== undefined) toEnd();
  const row = button.closest('.agent')?.dataset.part;
  await look();
  announce(said[button.name]);
  const next = row && shown().querySelector(`[data-part="${CSS.escape(row)}"] .does :is(a, button)`);
  (next ?? document.getElementById('main')).focus({ preventScroll: true });
}

export function startAgents() {
  if (dayShown()) checkNumbers();
  document.getElementById('main').addEventListener('click', (e) => {
    const button = e.target.closest(':is(#agent, #agents) button[form=agent-form]');
    if (!button || !Object.hasOwn(calls, button.name)) return;
    e.preventDefault();
    pressed(button);
  });
  const menu = () => document.querySelector('.menu[name=agent][open]');
  addEventListener('click', (e) => { if (menu() && !menu().contains(e.target)) menu().open = false; });
  addEventListener('keydown', (e) => {
    if (e.key !== 'Escape' || !menu()) return;
    menu().firstElementChild.focus();
    menu().open = false;
  });
  if (outputOf() === undefined) return;
  toEnd();
  document.getElementById('follow')?.addEventListener('click', () => { toEnd(); again(pauseOfOutput); });
  addEventListener('scroll', () => { if (isAtEnd() && !document.getElementById('follow')?.hidden) { offerEnd(false); again(pauseOfOutput); } }, { capture: true, passive: true });
}
