// Shows what an edited input would be: the digest of the call with it, beside that of the call that was shown.

const hex = (bytes) => [...new Uint8Array(bytes)].map((b) => b.toString(16).padStart(2, '0')).join('');

/** Returns the digest of a permission with an input, as the node has it: see Permission.Around. '' where the browser has no digests. */
async function digestOf(before, input, after) {
  if (!globalThis.crypto?.subtle) return ''; // the page is from another machine, without TLS
  const encode = (text) => new TextEncoder().encode(text);
  return hex(await crypto.subtle.digest('SHA-256', encode(`${before}${encode(input).length}:${input}${after}`)));
}

/** Keeps the digest of a form's edited input up to date. */
export function showDigest(form) {
  const code = form.querySelector('[data-digest-of]');
  const control = code && form.elements.namedItem(code.dataset.digestOf);
  if (!control) return;
  const update = async () => {
    const input = control.value;
    const digest = input && input !== control.defaultValue ? await digestOf(code.dataset.before, input, code.dataset.after) : '';
    if (input !== control.value) return; // another one came meanwhile
    code.textContent = digest;
    code.closest('div').hidden = !digest;
  };
  control.addEventListener('input', update);
  update();
}

/** Returns when a rule that ends after a number of hours ends, in words. */
export function ending(text) {
  const hours = /^(\d+)h$/.exec(text)?.[1];
  if (!hours) return text ? `until ${text}` : '';
  const at = new Date(Date.now() + hours * 3_600_000);
  const isToday = at.toDateString() === new Date().toDateString();
  return `until ${at.toLocaleString([], isToday ? { timeStyle: 'short' } : { dateStyle: 'medium', timeStyle: 'short' })}`;
}
