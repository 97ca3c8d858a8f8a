// Calls of the node's operations.

export class Refused extends Error {
  constructor(error, status) {
    super(error.message);
    Object.assign(this, { code: error.code, hint: error.hint ?? '', fields: error.fields ?? {}, status });
  }
}

const away = { code: 'NOT_RUNNING', message: 'The node cannot be reached. What you typed is kept: try again in a moment.' };

/** Calls an operation. It throws Refused. */
export async function call(operation, body) {
  let response;
  try {
    response = await fetch('/rpc/' + operation, {
      method: 'POST', headers: { 'Content-Type': 'application/json' }, body: JSON.stringify(body),
    });
  } catch {
    throw new Refused(away, 0);
  }
  let answer;
  try {
    answer = await response.json();
  } catch {
    answer = { error: { code: 'INTERNAL', message: `The node answered with ${response.status}.` } };
  }
  if (response.ok) return answer;
  throw new Refused(answer.error ?? { code: 'INTERNAL', message: 'internal error' }, response.status);
}

/** Fetches a page of this node and gives it as a document. */
export async function page(address) {
  const response = await fetch(address, { headers: { Accept: 'text/html' } });
  if (!response.ok) throw new Error(`${address}: ${response.status}`);
  return new DOMParser().parseFromString(await response.text(), 'text/html');
}

/** Fetches some of the questions that wait, by their keys, and gives those that still do. */
export async function questionCards(keys) {
  const doc = await page('/questions?' + new URLSearchParams(keys.slice(0, 50).map((k) => ['key', k])));
  return keys.map((k) => doc.getElementById(k)).filter((c) => c?.matches('[data-waits]'));
}
