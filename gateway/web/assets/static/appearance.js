// Styles a form in another page. That page changes the looks by part names, custom properties, font and color-scheme. Its
// stylesheets do not apply.

import { tellTimes } from './cards.js';

const parts = {
  '.head': 'from', '.head > .number': 'number', '.heading': 'title', '.context, .call': 'description', '.notes': 'notes', 'form.ask': 'form', '.field': 'field',
  '.field > label, legend, dt': 'label', '.help': 'help', 'input, textarea, select': 'control', '.choices': 'choices', '.choice': 'choice',
  '.wrong': 'wrong', '.failure': 'failure', '.acts': 'actions', 'button.primary[name=do], button.choice': 'answer', '.act': 'more', '.panel': 'panel',
  '[value=decline]': 'decline', '[value=forward]': 'forward', '.outcome': 'outcome', '.state': 'state', '.note': 'note', '.answers': 'answers',
};

/** The names of all parts of a form, for exportparts. */
export const exported = [...Object.values(parts), 'unsent'].join(', ');

/** Returns the part of a drawn message that other pages show. */
export function prepare(card) {
  const article = card.querySelector('article');
  for (const e of article.querySelectorAll('parley-act, .claims')) e.remove();
  for (const e of article.querySelectorAll('parley-ask, .head a')) e.replaceWith(...e.childNodes); // these work in the node's own pages only
  for (const [selector, part] of Object.entries(parts)) for (const e of article.querySelectorAll(selector)) e.part.add(part);
  article.dataset.status = card.dataset.status;
  article.dataset.digest = card.dataset.digest ?? '';
  article.dataset.revision = card.dataset.revision ?? '';
  article.tabIndex = -1;
  tellTimes(article);
  return document.adoptNode(article);
}

// Colours come in pairs, light and dark; each text has at least 4.5:1 on Canvas.
const style = `
:host {
  --text: var(--parley-text, CanvasText); --muted: var(--parley-muted, light-dark(#59606e, #a3abba)); --border: var(--parley-border, light-dark(#8a92a3, #6f7788));
  --accent: var(--parley-accent, light-dark(#2f50c0, #9db4ff)); --on-accent: var(--parley-on-accent, light-dark(#ffffff, #10162b));
  --wrong: var(--parley-wrong, light-dark(#a8201c, #ff9d95)); --surface: var(--parley-surface, Canvas); --gap: var(--parley-gap, .9rem); --radius: var(--parley-radius, 6px);
  display: block; color: var(--text); font: var(--parley-font, inherit);
}
:host([hidden]), [hidden] { display: none !important; }
*, ::before, ::after { box-sizing: border-box; }
:focus-visible { outline: 3px solid var(--accent); outline-offset: 2px; }
:focus:not(:focus-visible) { outline: none; }
h2, p, ol, dl, dd, fieldset { margin: 0; padding: 0; border: 0; min-width: 0; }
h2 { font-size: 1.15em; }
a { color: var(--accent); }
article, .ask { display: grid; gap: var(--gap); }
article > *, .ask > * { min-width: 0; }
p:empty, .notes:not(:has(*)) { display: none; }
.sr { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); white-space: nowrap; }
.head > .number { padding: 0 .4em; border: 1px solid var(--border); border-radius: var(--radius); }
.head, .help, .describe, .hint, .note, .muted, dt { color: var(--muted); font-size: .9em; }
.head { display: flex; flex-wrap: wrap; gap: 0 .75rem; }
.route { flex: 1; min-width: 0; overflow-wrap: anywhere; }
.who { color: var(--text); font-weight: 600; }
.who.stranger { font-family: ui-monospace, monospace; font-weight: 400; }
.heading, .context, .help, .note, dd { white-space: pre-wrap; overflow-wrap: anywhere; unicode-bidi: plaintext; }
.context.input, pre { margin: 0; padding: .5rem .7rem; max-height: 24rem; overflow: auto; border: 1px solid var(--border); border-radius: var(--radius); white-space: pre-wrap; font: .875em/1.5 ui-monospace, monospace; }
.block, .risks, .raw, .rest { margin-top: .5rem; }
.i, kbd, .shuts, .act[open] > summary > .opens { display: none; }
.act[open] > summary > .shuts { display: inline; }
form.ask:not(:has(.edit[open])) :is(.edit-card, [data-edited]) { display: none; }
.edit-card, .edited-call { display: grid; gap: .4rem; }
.edit-card h3 .muted { font-weight: 400; }
.edited-end { display: block; height: 1px; }
.change { white-space: pre-wrap; overflow-wrap: anywhere; }
.change ins { font-weight: 600; text-decoration: none; }
.bar, .two { display: grid; gap: .4rem; }
.sure { color: var(--wrong); }
.k, .st, .nm, .fn, .rm { color: inherit; }
.doing { display: grid; gap: .3rem; }
h3 { margin: 0; font-size: 1em; }
.place, .path, .aside, .whole { font-size: .875em; color: var(--muted); overflow-wrap: anywhere; }
.path { color: var(--text); font-family: ui-monospace, monospace; }
.risks { padding-left: 1.2em; color: var(--wrong); overflow-wrap: anywhere; }
pre.code { max-height: none; overflow-wrap: anywhere; }
.line { display: block; }
.line mark { color: inherit; background: light-dark(#ecd9a8, #5b4b1d); }
.values dt { color: var(--muted); }
.markdown :is(ul, ol) { padding-left: 1.4rem; }
.markdown :is(h3, h4, h5, h6) { margin: .5rem 0 0; font-size: 1em; }
.markdown table { display: block; overflow-x: auto; border-collapse: collapse; }
.markdown :is(th, td) { padding: .15rem .5rem; border: 1px solid var(--border); }
.field { display: grid; gap: .3rem; }
.field[data-changed] { padding-left: .6rem; border-left: 3px solid var(--accent); }
.field > label, legend { padding: 0; font-weight: 600; overflow-wrap: anywhere; }
.wrong, .failure, .mark { color: var(--wrong); }
.choices, .choice > span { min-width: 0; overflow-wrap: anywhere; }
.choices { display: grid; gap: .3rem; }
.buttons .choices, .acts, .row { display: flex; flex-wrap: wrap; align-items: center; gap: .5rem; }
label.choice { display: flex; gap: .5rem; font-weight: 400; }
.describe { display: block; }
input, textarea, select, button { max-width: 100%; font: inherit; color: inherit; }
input:not([type=checkbox], [type=radio]), textarea, select { width: 100%; padding: .5rem .7rem; background: var(--surface); border: 1px solid var(--border); border-radius: var(--radius); }
input[type=checkbox], input[type=radio] { width: 1.1em; height: 1.1em; margin: .2em 0 0; flex: none; accent-color: var(--accent); }
::placeholder { color: var(--muted); opacity: 1; }
[aria-invalid=true] { border-color: var(--wrong) !important; }
button { padding: .5rem 1rem; background: var(--surface); border: 1px solid var(--border); border-radius: var(--radius); cursor: pointer; overflow-wrap: anywhere; }
button.primary { color: var(--on-accent); background: var(--accent); border-color: var(--accent); }
button.primary .describe { color: inherit; }
button:disabled { opacity: .55; cursor: progress; }
button:disabled[data-unseen] { opacity: 1; border-style: dashed; background: none; border-color: var(--border); color: var(--muted); cursor: not-allowed; }
.call .context.input { max-height: none; }
.whole-end { display: block; height: 1px; }
summary { padding: .5rem; cursor: pointer; color: var(--muted); }
.act[open], .row input { flex: 1 1 100%; }
.panel { display: grid; gap: .35rem; padding: .5rem; }
.state { font-weight: 600; }
.answers { display: grid; gap: .5rem; margin-top: var(--gap); }
ol.questions { display: grid; gap: calc(2 * var(--gap)); list-style: none; }
`;

let sheet;

/** Attaches a styled shadow tree to an element. A page's policy against inline styles does not affect it. */
export function shadowOf(element) {
  if (!sheet) {
    sheet = new CSSStyleSheet();
    sheet.replaceSync(style);
  }
  const shadow = element.attachShadow({ mode: 'open' });
  shadow.adoptedStyleSheets = [sheet];
  return shadow;
}
