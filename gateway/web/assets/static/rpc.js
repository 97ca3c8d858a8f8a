// Calls the operations of the node that served the page, or of a node behind a proxy's path.

import { released } from './pointer.js';

export class Refused extends Error {
  constructor(error, status) {
    super(error.message);
    Object.assign(this, { code: error.code, hint: error.hint ?? '', fields: error.fields ?? {}, status });
  }
}

const unreachable = { code: 'NOT_RUNNING', message: 'The node cannot be reached. What you typed is kept: try again in a moment.' };

/** The prefix of the node's addresses. It has the key of the session under which this module was fetched. */
export const home = new URL('../..', import.meta.url).pathname.replace(/\/$/, '');

/**
 * The address of a node and the token for it.
 * @typedef {{base?: string, token?: string, signal?: AbortSignal, keepalive?: boolean}} Endpoint keepalive: the call goes on when the page ends
 */

/** @param {Endpoint} endpoint */
async function ask(address, init, { base = home, token = '', signal, keepalive }) {
  const headers = { ...init.headers, ...(token && { Authorization: `Bearer ${token}` }) };
  try {
    const response = await fetch(base + address, { ...init, headers, signal, keepalive });
    return { response, text: await response.text() };
  } catch (why) {
    if (signal?.aborted) throw why;
    throw new Refused(unreachable, 0);
  }
}

function refusal({ response, text }) {
  let error;
  try {
    error = JSON.parse(text).error;
  } catch {
    // the response is a proxy's
  }
  return new Refused(error ?? { code: 'INTERNAL', message: `The node answered with ${response.status}.` }, response.status);
}

/** Returns the options of a POST. The body is a value, or JSON as a string. */
const post = (body) => ({ method: 'POST', headers: { 'Content-Type': 'application/json' }, body: typeof body === 'string' ? body : JSON.stringify(body) });

/**
 * Calls an operation. The body is a value, or JSON as a string. It throws Refused.
 * @param {Endpoint} endpoint
 */
export async function call(operation, body, endpoint = {}, read = JSON.parse) {
  const answer = await ask('/rpc/' + operation, post(body), endpoint);
  if (!answer.response.ok) throw refusal(answer);
  try {
    return read(answer.text);
  } catch {
    throw refusal(answer);
  }
}

/**
 * Fetches a page of a node as a document, to be drawn at once: no button of a pointer is down then. It throws Refused.
 * @param {Endpoint} endpoint
 */
export async function page(address, endpoint = {}) {
  const answer = await ask(address, {}, endpoint); // refusals are JSON, because the request accepts any type
  if (!answer.response.ok) throw refusal(answer);
  await released();
  return new DOMParser().parseFromString(answer.text, 'text/html');
}

/** Fetches the HTML of a form that is not sent yet, to be drawn at once, as in page. It throws Refused. */
export async function preview(as, body) {
  const answer = await ask('/preview' + (as ? `?as=${encodeURIComponent(as)}` : ''), post(body), {});
  if (!answer.response.ok) throw refusal(answer);
  await released();
  return answer.text;
}
