// What makes the page live. Without it everything is a plain page with plain forms.

import { approvalsChanged } from './approval.js';
import { forgetOldDrafts } from './draft.js';
import { ParleyAct, ParleyForm } from './form.js';
import { tellTimes } from './cards.js';
import { mailChanged, startInbox } from './inbox.js';
import { focusFirst, questionsChanged } from './questions.js';
import { ParleyCommand } from './command.js';
import { follow } from './stream.js';

const { as, cursor } = document.body.dataset;
const stream = document.getElementById('stream');
const questions = document.getElementById('questions');

forgetOldDrafts();
customElements.define('parley-act', ParleyAct);
customElements.define('parley-ask', ParleyForm);
customElements.define('parley-command', ParleyCommand);
tellTimes(document);
if (stream) startInbox(stream);
if (questions) focusFirst(questions.querySelector('[data-waits]'));

const isNewest = stream && !location.search.includes('before=');
follow({ as, cursor: isNewest ? cursor : '' }, {
  questions: (what) => { questionsChanged(what); approvalsChanged(what); },
  ...(isNewest && { messages: (what) => mailChanged(stream, what) }),
});
document.documentElement.dataset.live = 'yes';
