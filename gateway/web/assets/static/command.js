// <parley-command> is the input for commands, with completion of their names and arguments. With data-to, the ID of an
// agent, it is a composer: plain words are a message to the agent.

import { announce } from './cards.js';
import { buildForm } from './builder.js';
import { call } from './rpc.js';
import { commands, expected, fitsText, Misread, quote, read, unfinishedForm, usage } from './commands.js';
import { Completion } from './completion.js';
import { composing } from './composing.js';
import { forgetDraft, readDraft, saveDraft, TextDraft } from './draft.js';
import { visible } from './visible.js';

const retries = [500, 1000, 2000, 4000]; // pauses before a message is sent again

export class ParleyCommand extends HTMLElement {
  connectedCallback() {
    if (this.dataset.to) this.compose();
    else {
      this.innerHTML = `<form autocomplete="off"><label class="sr" for="line">Command</label>
        <input id="line" aria-describedby="said" placeholder="/send, /form, /help …" spellcheck="false">
        <button class="primary">Send</button></form>`;
    }
    this.line = this.querySelector('#line');
    this.output = document.createElement('output');
    Object.assign(this.output, { className: 'said', id: 'said', role: 'status' });
    this.prepend(this.output);
    this.completion = new Completion(this.line, (text) => this.find(text), (c) => this.take(c));
    if (this.draft) this.line.addEventListener('keydown', (e) => this.pressed(e));
    this.line.addEventListener('input', () => this.line.removeAttribute('aria-invalid'));
    this.querySelector('form').addEventListener('submit', (e) => { e.preventDefault(); this.send(); });
  }

  /** Makes the plain form of a page a composer: Enter sends, Shift and Enter begin a line, and the draft is kept. */
  compose() {
    const line = this.querySelector('#line');
    const name = 'to/' + this.dataset.to;
    line.placeholder += ' or / for commands';
    line.setAttribute('aria-describedby', 'said');
    const under = readDraft(name); // what was sent, and is not known to have arrived
    this.draft = { name, ...under }; // with the key under which its text was sent, so that it is sent once
    this.typed = new TextDraft({ to: this.dataset.to, at: this.dataset.draft });
    if (under) line.value = under.text;
    else this.typed.follow(line);
    if (under) line.addEventListener('input', () => this.typed.save(line.value));
    line.addEventListener('input', () => this.keep());
  }

  pressed(event) {
    if (event.key !== 'Enter' || event.shiftKey || composing(event) || event.defaultPrevented) return;
    event.preventDefault();
    this.send();
  }

  /** Stores the text of the composer with the key under which it was sent. */
  keep() {
    const { draft, line: { value: text } } = this;
    if (!draft) return;
    if (text.trim() !== draft.sent) draft.key = draft.sent = undefined;
    if (text && draft.key) saveDraft(draft.name, { text, sent: draft.sent, key: draft.key });
    else forgetDraft(draft.name);
  }

  /** Sends a message to the agent. After a lost connection it sends the message again, under the same key. */
  async message(text) {
    const { draft } = this;
    draft.key ??= crypto.randomUUID();
    draft.sent = text;
    this.keep();
    await this.typed.stop(); // a draft that arrives after the message would come back
    for (const pause of [...retries, 0]) {
      try {
        const answer = await call('send_agent_message', { agentId: this.dataset.to, text, messageId: draft.key });
        if (answer.error) throw answer.error;
        return answer;
      } catch (e) {
        if (!pause || e.status !== 0) throw e;
        this.say('The node cannot be reached. It is sent again …');
        await new Promise((resolve) => { setTimeout(resolve, pause); });
      }
    }
  }

  say(text, failed = false) {
    this.output.textContent = visible(text).replaceAll('\\u{a}', '\n');
    this.output.classList.toggle('failed', failed);
    if (failed) this.line.setAttribute('aria-invalid', 'true');
    else this.line.removeAttribute('aria-invalid');
  }

  async send() {
    const line = this.line.value.trim();
    if (!line || this.busy) return;
    const begun = unfinishedForm(line);
    if (begun) return this.build(begun);
    this.completion.close();
    this.busy = true;
    const button = this.querySelector('button');
    button.disabled = true;
    try {
      if (this.draft && !line.startsWith('/')) {
        const { queued } = await this.message(line);
        this.done('message', { queued });
        return;
      }
      const [operation, body] = read(line);
      this.done(operation, operation === 'help' ? null : await call(operation, { as: document.body.dataset.as, ...body }));
    } catch (e) {
      if (!(e instanceof Misread) && !e.code) throw e;
      this.say(e.message + (e.hint ? '\n' + e.hint : ''), true);
      this.typed?.save(this.line.value);
    } finally {
      this.busy = false;
      button.disabled = false;
    }
  }

  done(operation, answer) {
    this.say(operation === 'help' ? help() : describe(operation, answer));
    this.line.value = '';
    this.keep();
    this.typed?.clear();
    announce(operation === 'message' ? 'Sent' : 'Done');
  }

  /** Opens the form builder. The line is cleared once the form has been sent. */
  async build(begun) {
    this.completion.close();
    this.say('');
    const asked = await buildForm(begun);
    if (asked) this.done('form', asked);
    this.line.focus();
  }

  /** Returns the completions of a line. */
  async find(line) {
    if (this.draft && !line.startsWith('/')) return [];
    this.word = expected(line);
    const { text, of, about, isCommand, isMark, hasEdge, mayBuild } = this.word;
    if (isCommand && text.startsWith('/')) {
      return Object.keys(commands).filter((c) => c.startsWith(text) && c !== text).map((c) => ({ word: c, description: `${usage(c).slice(c.length)} — ${commands[c].does}` }));
    }
    const build = { word: 'build a form …', description: 'field by field, with a preview', act: () => this.build(unfinishedForm(line)) };
    if (!of) return mayBuild ? [build] : [];
    const { candidates } = await call('complete', { as: document.body.dataset.as, of, prefix: text, ...(about && { number: about }) });
    const found = isMark ? candidates.filter((c) => fitsText(c.word, hasEdge)) : candidates;
    return mayBuild ? [build, ...found] : found;
  }

  take({ word }) {
    const { start, of } = this.word;
    const isField = of === 'fields' && word.endsWith(':'); // the value follows the colon
    this.line.value = this.line.value.slice(0, start) + (isField ? quote(word.slice(0, -1)) + ':' : quote(word) + ' ');
    this.completion.suggest();
  }
}

const help = () => Object.keys(commands).map((c) => `${usage(c)} — ${commands[c].does}`).join('\n');

/** Describes the result of a call. */
function describe(operation, answer) {
  if (operation === 'message') return answer.queued ? 'Queued' : '';
  if (operation === 'list_names') return answer.names.join('\n') || 'There are no names there.';
  if (answer.outcome) return 'It was answered before.';
  const said = [['Handed over', answer.given], ['Taken as text', answer.plain]].filter(([, names]) => names?.length).map(([what, names]) => `${what}: ${names.join(', ')}.`);
  if (said.length) return said.join(' ');
  if (answer.unreachable) return 'It is on its way to a node that cannot be reached now.';
  return operation === 'form' || operation === 'request' ? `Asked, as number ${answer.number}.` : 'Done.';
}
