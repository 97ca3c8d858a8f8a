// Stores a file that was chosen for a field, or dropped on it, in parts. The field's hidden input gets the text of the answer.

import { composing } from './composing.js';
import { call } from './rpc.js';
import { visible } from './visible.js';

const partBytes = 96 * 1024;
const mostBytes = 32 * 1024 * 1024;

/** Returns a part of a file in base64. */
async function base64(part) {
  const bytes = new Uint8Array(await part.arrayBuffer());
  let text = '';
  for (let i = 0; i < bytes.length; i += 4096) text += String.fromCharCode(...bytes.subarray(i, i + 4096));
  return btoa(text);
}

/** Stores a file for an agent, and returns what a message or an answer says of it. It throws Refused. */
export async function store(as, file, progress = () => {}) {
  if (file.size > mostBytes) throw new Error('A file has 32 MiB at most.');
  let at = { offset: 0 };
  do {
    progress(at.offset);
    at = await call('store_file', {
      as, ...(at.upload ? { upload: at.upload } : { size: file.size }), offset: at.offset, data: await base64(file.slice(at.offset, at.offset + partBytes)),
    });
  } while (!at.digest);
  return { digest: at.digest, name: file.name.replace(/[/\\]/g, '_') || 'file', size: file.size, ...(/^[!-~]+\/[!-~]+$/.test(file.type) && { type: file.type }) };
}

/** Stores the file that a field has, which replaces the one before. */
async function take(field, file) {
  const [text, chosen] = field.querySelectorAll('input');
  const status = field.querySelector('.upload');
  const turn = field.parleyTurn = Symbol();
  const isLast = () => field.parleyTurn === turn;
  text.value = '';
  try {
    const stored = await store(field.closest('[data-as]')?.dataset.as ?? '', file, (done) => {
      if (isLast()) status.textContent = `Storing ${file.name}: ${Math.round(100 * done / (file.size || 1))} %`;
    });
    if (!isLast()) return;
    text.value = JSON.stringify(stored);
    status.textContent = `${file.name} is stored`;
    chosen.value = ''; // it is not sent again with the form
    text.dispatchEvent(new Event('input', { bubbles: true }));
  } catch (why) {
    if (isLast()) status.textContent = why.message;
  }
}

/** Stores files that were chosen for a message, and adds each to what is sent with it. */
async function clip(composer, files) {
  const status = composer.querySelector('.upload');
  const as = composer.closest('[data-as]').dataset.as;
  const send = composer.querySelector('button.primary');
  send.disabled = true;
  try {
    for (const file of files) {
      const stored = await store(as, file, (done) => { status.textContent = `Storing ${file.name}: ${Math.round(100 * done / (file.size || 1))} %`; });
      const li = document.createElement('li');
      const [name, input, remove] = ['bdi', 'input', 'button'].map((tag) => document.createElement(tag));
      name.textContent = visible(stored.name);
      Object.assign(input, { type: 'hidden', name: 'files', value: JSON.stringify(stored) });
      Object.assign(remove, { type: 'button', className: 'quiet', textContent: '×', ariaLabel: `Do not send ${visible(stored.name)}` });
      remove.addEventListener('click', () => li.remove());
      li.append(name, input, remove);
      composer.querySelector('.clips').append(li);
    }
    status.textContent = '';
  } catch (why) {
    status.textContent = visible(why.message);
  }
  send.disabled = false;
}

const fieldOf = (event) => event.target.closest?.('.field.file');

/** Has files stored when they are chosen for a field, or dropped on one. */
export function startAttaching() {
  document.addEventListener('change', (event) => {
    const file = event.target.type === 'file' && event.target.files[0];
    const composer = event.target.closest?.('.writer');
    if (file && composer) {
      clip(composer, [...event.target.files]);
      event.target.value = '';
    } else if (file && fieldOf(event)) take(fieldOf(event), file);
  });
  document.addEventListener('keydown', (event) => {
    if (event.key !== 'Enter' || !(event.ctrlKey || event.metaKey) || composing(event) || !event.target.matches?.('.writer textarea, .asks textarea')) return;
    event.preventDefault();
    event.target.closest('.writer, .asks').querySelector('button.primary').click();
  });
  document.addEventListener('dragover', (event) => { if (fieldOf(event) || event.target.closest?.('.writer')) event.preventDefault(); });
  document.addEventListener('drop', (event) => {
    const field = fieldOf(event), file = event.dataTransfer?.files[0], composer = event.target.closest?.('.writer');
    if (composer && file) {
      event.preventDefault();
      clip(composer, [...event.dataTransfer.files]);
    }
    if (!field || !file) return;
    event.preventDefault();
    take(field, file);
  });
}
