// Starts the scripts of the page. Without them it is a plain page with plain forms.

import { agentsChanged, startAgents } from './agent.js';
import { approvalsChanged } from './approval.js';
import { forgetOldDrafts } from './draft.js';
import { ParleyAct, ParleyForm } from './form.js';
import { tellSpans, tellTimes } from './cards.js';
import { mailChanged, startInbox } from './inbox.js';
import { focusFirst, questionsChanged } from './questions.js';
import { startKeys } from './keys.js';
import { ParleyCommand } from './command.js';
import { notifyOf, startNotifying } from './notify.js';
import { home } from './rpc.js';
import { follow } from './stream.js';

const { reader, as, cursor } = document.body.dataset;
const stream = document.getElementById('stream');
const questions = document.getElementById('questions');

try {
  if (home) localStorage.setItem('parley.home', home); // for links without the session's key: see sign_in.go
} catch { /* such links ask to sign in, then */ }
forgetOldDrafts();
customElements.define('parley-act', ParleyAct);
customElements.define('parley-ask', ParleyForm);
customElements.define('parley-command', ParleyCommand);
tellTimes(document);
if (stream) startInbox(stream);
if (questions) focusFirst(document.getElementById(location.hash.slice(1)) ?? questions.querySelector('[data-waits]'));
const alone = document.querySelector('#alone > li[data-type=approval][data-waits]');
if (alone) focusFirst(alone);
startKeys();
setInterval(() => tellSpans(document), 30_000);
startNotifying(document.getElementById('notify'));

const isNewest = stream && !location.search.includes('before=');
const agents = document.getElementById('agents') ?? document.getElementById('agent');
if (agents) startAgents();
follow({ reader, as, cursor: isNewest ? cursor : '' }, {
  questions(what) { // also at the beginning, and after each reconnect
    questionsChanged({ ...what, keys: what.keys.slice(0, 50) }); // as many as the page of questions shows at first
    approvalsChanged(what);
    notifyOf(what);
    if (agents) agentsChanged();
  },
  ...(isNewest && { messages: (what) => mailChanged(stream, what) }),
  ...(agents && { agents: agentsChanged }),
});
document.documentElement.dataset.live = 'yes';
