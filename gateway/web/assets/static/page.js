// Starts the scripts of the page. Without them it is a plain page with plain forms.

import { agentsChanged, checkAbsences, leftChanged, outputChanged, outputOf, startAgents } from './agent.js';
import { startArrivals } from './arrivals.js';
import { startAttaching } from './attach.js';
import { isPicking, pick, pickGroup, pickNone, pickRow, pressBulk, startBulk } from './bulk.js';
import { commentHere, startChanges, stepChange, stepLine } from './changes.js';
import { announce, refresh, tellSpans, tellTimes } from './cards.js';
import { ParleyCommand } from './command.js';
import { forgetOldDrafts } from './draft.js';
import { ParleyAct, ParleyForm } from './form.js';
import { callsWait, canShow, close, isOpening, openCard, press, read, showPost, startItem } from './item.js';
import { focusFirst, hold, startKeys } from './keys.js';
import { mailChanged, startList } from './list.js';
import { notifyOf, startNotifying } from './notify.js';
import { showKeys, showPalette, startPalette, startTheme } from './palette.js';
import { openKey, questionsChanged } from './questions.js';
import { renewPush } from './push.js';
import { home } from './rpc.js';
import './signs.js';
import { follow } from './stream.js';
import { startDisk, toast } from './toast.js';
import { startWriters } from './writer.js';

const { reader, as, cursor } = document.body.dataset;
const list = document.getElementById('list');

try {
  if (home) localStorage.setItem('parley.home', home); // for links without the session's key: see sign_in.go
} catch { /* such links ask to sign in, then */ }
forgetOldDrafts();
customElements.define('parley-act', ParleyAct);
customElements.define('parley-ask', ParleyForm);
customElements.define('parley-command', ParleyCommand);
tellTimes(document);
startDisk();
startItem();
startList();
startBulk();
startChanges();
startArrivals();
startAttaching();
startWriters();
startPalette(document.getElementById('commands'));
startTheme(document.getElementById('theme'));
if (location.hash.length > 1 && list) openKey(location.hash.slice(1));
else if (openCard()?.matches('[data-waits]') && canShow() && (list?.dataset.needs || document.body.dataset.view === 'item')) focusFirst(openCard(), document.body.dataset.view !== 'item' && callsWait());
if (openCard()) hold(openCard());
showPost(openCard());
startKeys({ palette: showPalette, help: showKeys, back: close, done: () => press('dismiss'), unread: () => read(undefined, true), snooze: () => press('snooze-4'), shown: () => (canShow() ? openCard() : null), isOpening, change: stepChange, line: stepLine, comment: commentHere, pick, pickRow, pickGroup, isPicking, pickNone, pressBulk });
setInterval(() => { tellSpans(document); checkAbsences(); }, 30_000);
document.addEventListener('visibilitychange', checkAbsences); // the timer may have stood still
startNotifying(document.getElementById('notify'));
renewPush();

/** Marks what has come into the thread that a person has opened as read. */
function readThread(card) {
  if (card?.querySelector('.posts')?.dataset.unread && location.pathname.includes('/forms/') && !document.hidden && canShow()) read(card);
}

const postsOf = (card) => card?.querySelectorAll('.discussion .post').length ?? 0;
let looks = Promise.resolve();

/** Shows what was replied to a question about the open item. Its row stays as it is. */
function replied(what) {
  looks = looks.then(async () => {
    const card = openCard();
    const many = postsOf(card);
    if (!many || !(what.many || card.dataset.as || what.agents.includes(reader))) return;
    await refresh(card);
    if (openCard()?.id !== card.id || postsOf(openCard()) <= many) return;
    const words = Object.assign(document.createElement('p'), { textContent: 'A reply has come' });
    announce(words.textContent);
    toast(words);
  });
}

const agents = document.getElementById('agents') ?? document.getElementById('agent');
if (agents) startAgents();
follow({ reader, as, cursor, output: outputOf() }, {
  questions(what) { // also at the beginning, and after each reconnect
    questionsChanged(what);
    notifyOf(what);
    if (agents) agentsChanged();
  },
  ...(cursor && {
    messages(what) {
      mailChanged(what);
      const card = openCard();
      const isOf = (m) => String(m.number) === card.dataset.number || card.dataset.thread && m.html?.includes(`data-ask="thread ${card.dataset.thread}"`);
      if (card?.dataset.as === as && what.messages.some(isOf)) refresh(card).then(() => readThread(openCard()));
    },
  }),
  agents(what) {
    leftChanged();
    replied(what);
    if (agents) agentsChanged(what);
  },
  output: outputChanged,
});
document.documentElement.dataset.live = 'yes';
