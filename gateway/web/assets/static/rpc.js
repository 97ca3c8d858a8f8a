// Calls of a node's operations: of the one that served the page, or of one that a proxy has under a path.

export class Refused extends Error {
  constructor(error, status) {
    super(error.message);
    Object.assign(this, { code: error.code, hint: error.hint ?? '', fields: error.fields ?? {}, status });
  }
}

const away = { code: 'NOT_RUNNING', message: 'The node cannot be reached. What you typed is kept: try again in a moment.' };

/** What the addresses of the node begin with: the key of the session stands there, which this module was fetched by. */
export const home = new URL('../..', import.meta.url).pathname.replace(/\/$/, '');

/**
 * Where a node is, and by what right it is asked.
 * @typedef {{base?: string, token?: string, signal?: AbortSignal}} Place
 */

/** @param {Place} place */
async function ask(address, init, { base = home, token = '', signal }) {
  const headers = { ...init.headers, ...(token && { Authorization: `Bearer ${token}` }) };
  try {
    const response = await fetch(base + address, { ...init, headers, signal });
    return { response, text: await response.text() };
  } catch (why) {
    if (signal?.aborted) throw why;
    throw new Refused(away, 0);
  }
}

function refusal({ response, text }) {
  let error;
  try {
    error = JSON.parse(text).error;
  } catch {
    // it is none of the node's own, but of something before it
  }
  return new Refused(error ?? { code: 'INTERNAL', message: `The node answered with ${response.status}.` }, response.status);
}

/** A POST of what stands for JSON, or of JSON as a string. */
const post = (body) => ({ method: 'POST', headers: { 'Content-Type': 'application/json' }, body: typeof body === 'string' ? body : JSON.stringify(body) });

/**
 * Calls an operation. The body is what stands for JSON, or JSON as a string. It throws Refused.
 * @param {Place} place
 */
export async function call(operation, body, place = {}, read = JSON.parse) {
  const answer = await ask('/rpc/' + operation, post(body), place);
  if (!answer.response.ok) throw refusal(answer);
  try {
    return read(answer.text);
  } catch {
    throw refusal(answer);
  }
}

/**
 * Fetches a page of a node and gives it as a document. It throws Refused.
 * @param {Place} place
 */
export async function page(address, place = {}) {
  const answer = await ask(address, {}, place); // what is refused comes as JSON, for no HTML is asked for
  if (!answer.response.ok) throw refusal(answer);
  return new DOMParser().parseFromString(answer.text, 'text/html');
}

/** Has the node draw a form that is not sent yet, as HTML. It throws Refused. */
export async function preview(as, body) {
  const answer = await ask('/preview' + (as ? `?as=${encodeURIComponent(as)}` : ''), post(body), {});
  if (!answer.response.ok) throw refusal(answer);
  return answer.text;
}

/** Fetches some of the questions that wait, by their keys, and gives those that still do. */
export async function questionCards(keys) {
  const doc = await page('/questions?' + new URLSearchParams(keys.slice(0, 50).map((k) => ['key', k])));
  return keys.map((k) => doc.getElementById(k)).filter((c) => c?.matches('[data-waits]'));
}
