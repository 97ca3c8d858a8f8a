// Calls the operations of the node that served the page, or of a node behind a proxy's path.

import { released } from './pointer.js';

export class Refused extends Error {
  constructor(error, status) {
    super(error.message);
    Object.assign(this, { code: error.code, hint: error.hint ?? '', fields: error.fields ?? {}, status });
  }
}

/** What is said without a connection: of what was sent, and of what was not. It is taken back once the connection is there again. */
export const away = ['The node cannot be reached. What you typed is kept: try again in a moment.', 'There is no connection now, and nothing was sent.'];
const unreachable = { code: 'NOT_RUNNING', message: away[0] };

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

const longCall = 2000; // milliseconds until a person is told what a call waits for
let waiting = 0; // calls that were said to wait for the node's disk

/** Tells the page, as events, that a call waits for the node's disk, and when none does any more. It returns the function that ends this. */
function tellOfDisk({ base, token }) {
  let over = false;
  let told = false;
  const look = setTimeout(async () => {
    try {
      const { text } = await ask('/rpc/status', post({}), { base, token });
      const seconds = JSON.parse(text).journal?.flushing ?? 0;
      if (over || seconds === 0) return;
      told = true;
      waiting++;
      dispatchEvent(new CustomEvent('diskwaits', { detail: seconds }));
    } catch {
      // the result of the call says why
    }
  }, longCall);
  return () => {
    over = true;
    clearTimeout(look);
    if (told && --waiting === 0) dispatchEvent(new CustomEvent('diskgoes'));
  };
}

/**
 * Calls an operation. The body is a value, or JSON as a string. It throws Refused.
 * @param {Endpoint} endpoint
 */
export async function call(operation, body, endpoint = {}, read = JSON.parse) {
  const ended = body?.waitMs === undefined ? tellOfDisk(endpoint) : () => {}; // what waits for others is slow by itself
  let answer;
  try {
    answer = await ask('/rpc/' + operation, post(body), endpoint);
  } finally {
    ended();
  }
  if (!answer.response.ok) {
    const why = refusal(answer);
    if (why.code !== 'PASSKEY_REQUIRED' || !signs(operation, body, endpoint)) throw why;
    return (await import('./passkey.js')).signed(operation, body, why, endpoint);
  }
  let result;
  try {
    result = read(answer.text);
  } catch {
    throw refusal(answer);
  }
  if (operation === 'decide_many' && signs(operation, body, endpoint) && result.results.some(({ error }) => error?.code === 'PASSKEY_REQUIRED')) await (await import('./passkey.js')).signedEach(body, result.results, endpoint);
  return result;
}

/** Reports whether the person is asked for a passkey where a call is refused without one: on the node's own page, and once. */
function signs(operation, body, { base = home }) {
  return base === home && operation !== 'ask_passkey' && typeof body === 'object' && !body.passkey;
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

/** Sends a plain form of a page, and returns the address that follows. It throws Refused. */
export async function send(address, body) {
  const answer = await ask(address, { method: 'POST', headers: { Accept: 'application/json' }, body: new URLSearchParams(body) }, { base: '' });
  if (!answer.response.ok) throw refusal(answer);
  return answer.response.url;
}

/** Fetches the HTML of a form that is not sent yet, to be drawn at once, as in page. It throws Refused. */
export async function preview(as, body) {
  const answer = await ask('/preview' + (as ? `?as=${encodeURIComponent(as)}` : ''), post(body), {});
  if (!answer.response.ok) throw refusal(answer);
  await released();
  return answer.text;
}

/**
 * Fetches what a call would be with another input, as a document to be drawn at once. It throws Refused.
 * @param {string} address of the message
 * @param {Record<string, string>} typed by the name of the control
 * @param {Endpoint} endpoint
 */
export async function edited(address, typed, endpoint = {}) {
  const answer = await ask(address, { method: 'POST', headers: { 'Content-Type': 'application/x-www-form-urlencoded' }, body: new URLSearchParams(typed).toString() }, endpoint);
  if (!answer.response.ok) throw refusal(answer);
  await released();
  return new DOMParser().parseFromString(answer.text, 'text/html');
}
