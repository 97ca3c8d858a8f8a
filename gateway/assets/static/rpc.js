// Calls of the node's operations.

export class Refused extends Error {
  constructor(error, status) {
    super(error.message);
    Object.assign(this, { code: error.code, hint: error.hint ?? '', fields: error.fields ?? {}, status });
  }
}

const away = { code: 'NOT_RUNNING', message: 'The node cannot be reached. What you typed is kept: try again in a moment.' };

async function post(address, body) {
  try {
    return await fetch(address, {
      method: 'POST', headers: { 'Content-Type': 'application/json' }, body: typeof body === 'string' ? body : JSON.stringify(body),
    });
  } catch {
    throw new Refused(away, 0);
  }
}

/** Reads what came back as JSON. It throws Refused if that is a refusal. */
async function answerOf(response) {
  let answer;
  try {
    answer = await response.json();
  } catch {
    answer = { error: { code: 'INTERNAL', message: `The node answered with ${response.status}.` } };
  }
  if (response.ok) return answer;
  throw new Refused(answer.error ?? { code: 'INTERNAL', message: 'internal error' }, response.status);
}

/** Calls an operation. The body is what stands for JSON, or JSON as a string. It throws Refused. */
export async function call(operation, body) {
  return answerOf(await post('/rpc/' + operation, body));
}

/** Has the node draw a form that is not sent yet, as HTML. It throws Refused. */
export async function preview(as, body) {
  const response = await post('/preview' + (as ? `?as=${encodeURIComponent(as)}` : ''), body);
  return response.ok ? response.text() : answerOf(response);
}

/** Fetches a page of this node and gives it as a document. */
export async function page(address) {
  const response = await fetch(address, { headers: { Accept: 'text/html' } });
  if (!response.ok) throw new Error(`${address}: ${response.status}`);
  return new DOMParser().parseFromString(await response.text(), 'text/html');
}
