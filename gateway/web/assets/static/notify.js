// Shows browser notifications, if enabled. While no tab is visible, one tab shows a single notification for all new
// questions.

import { announce, isTyping } from './cards.js';
import { hold } from './lock.js';
import { openKey, questionRows } from './questions.js';
import { home } from './rpc.js';
import { visible } from './visible.js';

const key = 'parley.notify';
const gathering = 2000;
const [mostTitles, longestTitle] = [3, 80];
const isPossible = 'Notification' in globalThis && 'locks' in navigator;

const come = new Set(); // questions that arrived since a tab was visible
let known; // all open questions
let timer = 0;
let shown; // the present notification

const remember = (wants) => { try { localStorage.setItem(key, wants ? 'yes' : 'no'); } catch { /* only for this page, then */ } };
const wants = () => { try { return localStorage.getItem(key) === 'yes'; } catch { return false; } };
const isOn = () => isPossible && wants() && Notification.permission === 'granted';

/** Starts the button. It stays hidden where notifications are not supported. */
export function startNotifying(button) {
  if (!isPossible) return;
  const say = () => button.setAttribute('aria-pressed', String(isOn()));
  button.hidden = false;
  say();
  button.addEventListener('click', async () => {
    const on = !isOn();
    if (on && await Notification.requestPermission() !== 'granted') {
      button.textContent = 'Blocked by the browser';
      announce('The browser lets this page show no notifications: its settings for this site say so.');
    }
    remember(on);
    if (!on) forget();
    say();
  });
  addEventListener('storage', (e) => { if (e.key === key) say(); }); // another tab's button
  document.addEventListener('visibilitychange', looked);
  looked();
  takeTurn();
  addEventListener('pageshow', (e) => { if (e.persisted) takeTurn(); });
}

/** Holds a shared lock while this tab is visible. */
let lookAway = () => {};
function looked() {
  lookAway();
  if (document.hidden) return;
  lookAway = hold('parley.looked-at', 'shared');
  forget();
}

/** Acquires the lock of the tab that shows notifications. Another tab gets it when this one closes. */
let isNotifier = false;
function takeTurn() {
  const end = hold('parley.notifier', 'exclusive', () => { isNotifier = true; });
  addEventListener('pagehide', () => { isNotifier = false; forget(); end(); }, { once: true });
}

function forget() {
  come.clear();
  clearTimeout(timer);
  timer = 0;
  shown?.close();
  shown = undefined;
}

export function notifyOf({ keys }) {
  const fresh = known ? keys.filter((k) => !known.has(k)) : [];
  known = new Set(keys);
  for (const k of come) if (!known.has(k)) come.delete(k);
  if (come.size === 0) shown?.close(); // all were answered
  if (!document.hidden) return;
  for (const k of fresh) come.add(k);
  if (fresh.length > 0 && timer === 0) timer = setTimeout(notify, gathering);
}

async function notify() {
  timer = 0;
  if (!isNotifier || !isOn() || !document.hidden) return;
  const { held } = await navigator.locks.query();
  if (held.some((l) => l.name === 'parley.looked-at')) {
    come.clear();
    return;
  }
  const cards = await questionRows([...come]);
  if (cards.length > 0 && document.hidden) show(cards);
}

function show(cards) {
  const isApproval = (c) => c.dataset.type === 'approval';
  const approvals = cards.filter(isApproval);
  const inOrder = [...approvals, ...cards.filter((c) => !isApproval(c))];
  const titles = inOrder.slice(0, mostTitles).map(title);
  if (inOrder.length > mostTitles) titles.push(`and ${inOrder.length - mostTitles} more`);
  shown?.close();
  const what = heading(approvals.length, cards.length - approvals.length);
  shown = new Notification(what, { body: titles.join(', '), tag: 'parley.questions', renotify: true });
  shown.onclick = () => { goTo(inOrder[0].dataset.key); forget(); };
}

function heading(approvals, questions) {
  const some = (n, what) => (n === 0 ? [] : [`${n} ${what}${n === 1 ? '' : 's'}`]);
  const all = [...some(approvals, 'approval'), ...some(questions, 'question')];
  return `${all.join(' and ')} ${approvals + questions === 1 ? 'waits' : 'wait'}`;
}

function title(card) {
  const of = card.dataset.type === 'approval' ? `${card.querySelector('.from bdi').textContent}: ` : '';
  const text = visible(of + card.querySelector('.what').textContent);
  const characters = [...text];
  return characters.length > longestTitle ? characters.slice(0, longestTitle).join('') + '…' : text;
}

/** Opens a question, in this tab unless the person is typing here. */
function goTo(id) {
  window.focus();
  if (isTyping()) window.open(home + '/questions#' + id);
  else if (document.getElementById('list')) openKey(id);
  else location.assign(home + '/questions#' + id);
}
