// The commands: their arguments, and the calls that they make.

const name = { is: 'NAME', of: 'names' };
const pending = { is: 'NUMBER', of: 'pending' };
const received = { is: 'NUMBER', of: 'messages' };
const open = { is: 'NUMBER', of: 'open' };
const requested = { is: 'NUMBER', of: 'requests' };
const carrier = { is: 'NUMBER', of: 'carriers' };
const rest = (is, optional) => ({ is, rest: true, optional });
const text = { ...rest('TEXT'), carries: true };

/**
 * Commands by name: takes are the arguments, does is a description, call returns the operation and its body. An argument
 * with rest is the unchanged rest of the line. of names the completion; ofFirst completes for the message in the first word.
 */
export const commands = {
  '/form': { takes: [name, { is: 'DESCRIPTION' }, { is: 'FIELD:LABEL', many: true }], does: 'ask for fields to be filled in; /form alone opens a builder',
    call: ([recipient, description, ...fields]) => ['form', { recipient, description, fields: fields.map((f) => pair(f, 'name', 'label', { required: true })) }] },
  '/respond-form': { takes: [pending, { is: 'FIELD:VALUE', of: 'fields', ofFirst: true, many: true }], does: 'answer a form',
    call: ([number, ...texts]) => ['respond_form', { number, texts: texts.map((t) => pair(t, 'name', 'text')) }] },
  '/request': { takes: [name, rest('WHAT')], does: 'ask for a capability in words', call: ([recipient, text]) => ['request', { recipient, text }] },
  '/resolve': { takes: [requested, name], does: 'give what was requested', call: ([number, n]) => ['resolve', { number, name: n }] },
  '/reject': { takes: [requested, rest('WHY', true)], does: 'refuse a request', call: ([number, reason]) => ['reject', { number, reason }] },
  '/decline': { takes: [pending, rest('WHY', true)], does: 'decline a form', call: ([number, reason]) => ['decline_form', { number, reason }] },
  '/cancel': { takes: [open, rest('WHY', true)], does: 'take back what you asked', call: ([number, reason]) => ['cancel_form', { number, reason }] },
  '/forward': { takes: [pending, name], does: 'hand a form on', call: ([number, recipient]) => ['forward_form', { number, recipient }] },
  '/send': { takes: [name, text], does: 'send a message; @name in it gives what you hold', call: ([recipient, text]) => ['send', { recipient, text }] },
  '/reply': { takes: [received, text], does: 'reply to a message', call: ([number, text]) => ['reply', { number, text }] },
  '/adopt': { takes: [carrier, { is: 'EDGE', of: 'edges', ofFirst: true }, { is: 'NAME', optional: true }], does: 'keep what a message brings', call: ([number, edge, n]) => ['adopt', { number, edge, name: n }] },
  '/dismiss': { takes: [received], does: 'drop a message from view', call: ([number]) => ['dismiss', { number }] },
  '/names': { takes: [{ ...name, is: 'PATH', optional: true }], does: 'list what you hold', call: ([path]) => ['list_names', { path }] },
  '/help': { takes: [], does: 'list the commands' },
};

export class Misread extends Error {}

function pair(text, first, second, more) {
  const colon = text.indexOf(':');
  if (colon < 1) throw new Misread(`${text}: put a colon between the field's name and what it is to say.`);
  return { [first]: text.slice(0, colon), [second]: text.slice(colon + 1), ...more };
}

export function usage(command) {
  const takes = commands[command].takes.map((t) => (t.optional ? `[${t.is}]` : t.is) + (t.many ? ' …' : ''));
  return [command, ...takes].join(' ');
}

/** Splits a line into words with their positions. Quotes keep spaces in a word. */
export function words(line) {
  const found = [];
  for (const m of line.matchAll(/(?:"(?:[^"\\]|\\.)*"?|'[^']*'?|[^\s"'])+/g)) {
    const text = m[0].replace(/"((?:[^"\\]|\\.)*)"?|'([^']*)'?/g, (_, d, s) => d?.replace(/\\(.)/g, '$1') ?? s);
    found.push({ text, start: m.index, end: m.index + m[0].length });
  }
  return found;
}

export const quote = (word) => (/[\s"']/.test(word) ? `"${word.replace(/["\\]/g, '\\$&')}"` : word);

/** Returns a text without the quotes around all of it. */
function unquoted(text) {
  const m = /^(?:"((?:[^"\\]|\\.)*)"|'([^']*)')$/.exec(text);
  return m ? (m[1]?.replace(/\\(.)/g, '$1') ?? m[2]) : text;
}

/** Reads a line as a call: the operation and its body. It throws Misread. */
export function read(line) {
  const [first, ...given] = words(line);
  const command = Object.hasOwn(commands, first?.text ?? '') && commands[first.text];
  if (!command) throw new Misread(first?.text.startsWith('/') ? `There is no ${first.text}. /help lists the commands.` : 'Begin with a command, such as /send NAME TEXT. /help lists them.');
  const taken = [];
  for (const [i, t] of command.takes.entries()) {
    if (i >= given.length) {
      if (t.optional) break;
      throw new Misread('It goes: ' + usage(first.text));
    }
    if (t.rest) taken.push(unquoted(line.slice(given[i].start).trim()));
    else taken.push(given[i].text);
    if (t.many) taken.push(...given.slice(i + 1).map((w) => w.text));
  }
  const last = command.takes.at(-1);
  if (given.length > command.takes.length && !last?.rest && !last?.many) throw new Misread('It goes: ' + usage(first.text));
  return command.call ? command.call(taken) : ['help', {}];
}

/** Returns the recipient and description of a /form line without fields, for the builder, or null for other lines. */
export function unfinishedForm(line) {
  const [first, recipient = '', description = '', more] = words(line).map((w) => w.text);
  return first === '/form' && more === undefined ? { recipient, description } : null;
}

const reference = /(?:^|[^\p{L}\p{N}_@\\])@(?:([\p{L}\p{N}_.-]+):)?(@?[\p{L}\p{N}_./-]*)$/u;

/** Reports whether a name can follow an @ in a text. Special names need an edge. */
export const fitsText = (name, hasEdge) => (hasEdge || !name.startsWith('@')) && /^@?[\p{L}\p{N}_]+(?:[-./]+[\p{L}\p{N}_]+)*$/u.test(name);

/** Returns the name that is begun behind an @ at the end of a text, its start, and whether an edge is before it; null for none. */
export function marked(text) {
  const m = reference.exec(text);
  return m && { text: m[2], start: text.length - m[2].length, hasEdge: Boolean(m[1]) };
}

/** Returns the last word of a line, its start, and what kind of word is expected. */
export function expected(line) {
  const all = words(line);
  if (all.length === 0 || /\s$/.test(line)) all.push({ text: '', start: line.length });
  const word = all.at(-1);
  if (all.length === 1) return { ...word, isCommand: true };
  const takes = Object.hasOwn(commands, all[0].text) ? commands[all[0].text].takes : [];
  const at = Math.min(all.length - 2, takes.length - 1);
  const t = takes[at] ?? {};
  if (all.length - 2 > at && !t.many && !t.rest) return word;
  const mark = t.carries && marked(line);
  if (mark) return { ...mark, of: 'names', isMark: true };
  return { ...word, of: t.of, about: t.ofFirst && all[1].text, mayBuild: word.text === '' && Boolean(unfinishedForm(line)) };
}
