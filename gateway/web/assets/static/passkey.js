// Has a person sign with a passkey what the node refuses without one.

import { call, Refused } from './rpc.js';

const refused = (message, hint) => new Refused({ code: 'PASSKEY_REQUIRED', message, hint }, 0);

/** Returns what the browser gives, or throws Refused. The browser says in its own words why it gave nothing, if it may. */
async function given(what) {
  if (!window.PublicKeyCredential?.parseRequestOptionsFromJSON) throw refused('This browser has no passkeys on this page.', isSecureContext ? 'Take a newer browser.' : 'Open the page by https, or on the node’s own machine.');
  try {
    return (await what()).toJSON();
  } catch (why) {
    if (why.name === 'InvalidStateError') throw refused('This passkey is registered already.', '');
    throw refused('Nothing was signed with a passkey.', why.name === 'NotAllowedError' ? 'The browser’s question was closed, or nobody answered it: try once more.' : why.message);
  }
}

/** Returns the signature of an answer as respond_form takes it, or of {act}. It throws Refused. */
export async function signature(request, endpoint) {
  const { statement, challenge, host, credentials } = await call('ask_passkey', { ...request, origin: location.origin }, endpoint);
  const publicKey = { challenge, rpId: host, userVerification: 'required', allowCredentials: credentials.map((id) => ({ id, type: 'public-key' })) };
  const { id, response } = await given(() => navigator.credentials.get({ publicKey: PublicKeyCredential.parseRequestOptionsFromJSON(publicKey) }));
  return { credential: id, statement, clientData: response.clientDataJSON, authenticator: response.authenticatorData, signature: response.signature };
}

/** Registers a passkey under a name. It throws Refused. */
export async function register(name) {
  const { options } = await call('begin_passkey', { name, origin: location.origin });
  const credential = await given(() => navigator.credentials.create({ publicKey: PublicKeyCredential.parseCreationOptionsFromJSON(options) }));
  return call('add_passkey', { credential });
}

/** Returns a decision as respond_form takes it. */
function answerOf({ form, digest, decision, reason, rule, until, mandate }, as) {
  const texts = Object.entries({ decision, reason, rule, until }).filter(([, text]) => text).map(([name, text]) => ({ name, text }));
  return { as, id: form, digest, texts, ...(mandate && { mandate }) };
}

/** Calls an operation again that was refused, signed. */
export async function signed(operation, body, why, endpoint) {
  const { act } = why.fields;
  return call(operation, { ...body, passkey: await signature(act ? { as: body.as, act } : body, endpoint) }, endpoint);
}

/** Makes those of many decisions that were refused for it, each signed for itself. Who gives up once is asked no more. */
export async function signedEach(body, results, endpoint) {
  for (const [i, { error }] of results.entries()) {
    if (error?.code !== 'PASSKEY_REQUIRED') continue;
    const answer = answerOf(body.decisions[i], body.as);
    try {
      const outcome = await call('respond_form', { ...answer, secondVote: body.secondVote, passkey: await signature(answer, endpoint) }, endpoint);
      results[i] = { form: results[i].form, outcome };
    } catch (why) {
      if (!(why instanceof Refused)) throw why;
      results[i].error = { code: why.code, message: why.message, hint: why.hint };
      break;
    }
  }
}
