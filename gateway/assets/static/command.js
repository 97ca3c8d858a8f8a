// <parley-command> is the message box: a line for commands, with completion of their names and of what they take.

import { announce } from './cards.js';
import { call } from './rpc.js';
import { commands, expected, Misread, quote, read, usage } from './commands.js';
import { visible } from './visible.js';

const most = 50;

export class ParleyCommand extends HTMLElement {
  connectedCallback() {
    this.innerHTML = `<output class="said" role="status"></output>
      <form autocomplete="off"><label class="sr" for="line">Command</label>
      <input id="line" role="combobox" aria-autocomplete="list" aria-expanded="false" aria-controls="suggestions" placeholder="/send, /form, /help …" spellcheck="false">
      <ul class="suggestions" id="suggestions" role="listbox" aria-label="Suggestions" hidden></ul>
      <button class="primary">Send</button></form>`;
    this.line = this.querySelector('input');
    this.list = this.querySelector('ul');
    this.output = this.querySelector('output');
    this.chosen = -1;
    this.asked = 0;
    this.line.addEventListener('input', () => this.suggest());
    this.line.addEventListener('keydown', (e) => this.pressed(e));
    this.line.addEventListener('blur', () => this.close());
    this.list.addEventListener('mousedown', (e) => { e.preventDefault(); this.take([...this.list.children].indexOf(e.target.closest('li'))); });
    this.querySelector('form').addEventListener('submit', (e) => { e.preventDefault(); this.send(); });
  }

  say(text, failed = false) {
    this.output.textContent = visible(text).replaceAll('\\u{a}', '\n');
    this.output.classList.toggle('failed', failed);
  }

  async send() {
    const line = this.line.value.trim();
    if (!line || this.busy) return;
    this.close();
    this.busy = true;
    const button = this.querySelector('button');
    button.disabled = true;
    try {
      const [operation, body] = read(line);
      this.say(operation === 'help' ? help() : told(operation, await call(operation, { as: document.body.dataset.as, ...body })));
      this.line.value = '';
      announce('Done');
    } catch (e) {
      if (!(e instanceof Misread) && !e.code) throw e;
      this.say(e.message + (e.hint ? '\n' + e.hint : ''), true);
    } finally {
      this.busy = false;
      button.disabled = false;
    }
  }

  async suggest() {
    const turn = ++this.asked;
    const { word, command, of } = expected(this.line.value);
    let found = [];
    if (command && word.text.startsWith('/')) {
      found = Object.keys(commands).filter((c) => c.startsWith(word.text) && c !== word.text).map((c) => ({ word: c, description: `${usage(c).slice(c.length)} — ${commands[c].does}` }));
    } else if (of) {
      try {
        ({ candidates: found } = await call('complete', { as: document.body.dataset.as, of, prefix: word.text }));
      } catch {
        found = []; // then it is typed to its end
      }
    }
    if (turn === this.asked) this.show(found.slice(0, most), word);
  }

  show(found, word) {
    this.found = found;
    this.word = word;
    this.list.replaceChildren(...found.map((c, i) => {
      const li = document.createElement('li');
      li.id = `suggestion-${i}`;
      li.setAttribute('role', 'option');
      const [b, span] = [document.createElement('b'), document.createElement('span')];
      b.textContent = visible(c.word);
      span.textContent = visible(c.description ?? '');
      li.append(b, span);
      return li;
    }));
    this.list.hidden = found.length === 0;
    this.line.setAttribute('aria-expanded', String(found.length > 0));
    this.choose(-1);
  }

  choose(i) {
    this.chosen = i;
    for (const [n, li] of [...this.list.children].entries()) li.setAttribute('aria-selected', String(n === i));
    this.list.children[i]?.scrollIntoView({ block: 'nearest' });
    if (i < 0) this.line.removeAttribute('aria-activedescendant');
    else this.line.setAttribute('aria-activedescendant', `suggestion-${i}`);
  }

  take(i) {
    const c = this.found?.[i];
    if (!c) return;
    this.line.value = this.line.value.slice(0, this.word.start) + quote(c.word) + ' ';
    this.suggest();
  }

  close() { this.asked++; this.show([], null); }

  pressed(event) {
    if (event.isComposing || this.list.hidden) return;
    const n = this.list.childElementCount;
    switch (event.key) {
      case 'ArrowDown': this.choose((this.chosen + 1) % n); break;
      case 'ArrowUp': this.choose(this.chosen > 0 ? this.chosen - 1 : n - 1); break;
      case 'Tab': this.take(Math.max(this.chosen, 0)); break;
      case 'Escape': this.close(); break;
      case 'Enter':
        if (this.chosen < 0) return;
        this.take(this.chosen);
        break;
      default: return;
    }
    event.preventDefault();
  }
}

const help = () => Object.keys(commands).map((c) => `${usage(c)} — ${commands[c].does}`).join('\n');

/** Says what came of a call. */
function told(operation, answer) {
  if (operation === 'list_names') return answer.names.join('\n') || 'There are no names there.';
  if (answer.outcome) return 'It was answered before.';
  if (answer.unreachable) return 'It is on its way to a node that cannot be reached now.';
  return operation === 'form' || operation === 'request' ? `Asked, as number ${answer.number}.` : 'Done.';
}
