// The subscription of this browser to push, and the service worker that shows what comes. The worker's scope has no page:
// it sees none, and keeps none.

import { home } from './rpc.js';

/** The address of the node, without the key of the session. */
export const top = home.replace(/\/s\/[^/]+$/, '');

const scope = `${top}/push/`;
const script = new URL('push-worker.js', import.meta.url);
const key = 'parley.push'; // the session that the node knows this browser by

export const isPossible = 'PushManager' in globalThis && 'Notification' in globalThis && 'serviceWorker' in navigator;

/** Returns the subscription, or undefined. */
export async function subscription() {
  const worker = await navigator.serviceWorker.getRegistration(scope);
  return await worker?.pushManager.getSubscription() ?? undefined;
}

const register = () => navigator.serviceWorker.register(script, { scope });

/** Resolves to a registration once its worker runs. */
function running(registration) {
  const worker = registration.installing ?? registration.waiting;
  if (registration.active || !worker) return registration;
  return new Promise((resolve, reject) => {
    worker.addEventListener('statechange', () => {
      if (worker.state === 'activated') resolve(registration);
      if (worker.state === 'redundant') reject(new Error('The browser does not run the script for notifications.'));
    });
  });
}

const bytes = (text) => Uint8Array.from(atob(text.replaceAll('-', '+').replaceAll('_', '/')), (c) => c.charCodeAt(0));

/** Subscribes with the key of the node, and has the node tell this browser. */
export async function subscribe(applicationServerKey) {
  const { pushManager } = await running(await register());
  const options = { userVisibleOnly: true, applicationServerKey: bytes(applicationServerKey) };
  let made;
  try {
    made = await pushManager.subscribe(options);
  } catch (why) {
    if (why.name !== 'InvalidStateError') throw why;
    await (await pushManager.getSubscription())?.unsubscribe(); // it was made with another key
    made = await pushManager.subscribe(options);
  }
  await tell(made);
}

/** Has the node tell this browser, by this session. */
async function tell(made) {
  const { endpoint, keys } = made.toJSON();
  await post({ endpoint, p256dh: keys.p256dh, auth: keys.auth, address: location.origin + top });
  localStorage.setItem(key, home);
}

/** Sends a form to the page of the devices. */
export async function post(body) {
  const answer = await fetch(`${home}/devices`, { method: 'POST', body: new URLSearchParams(body), headers: { Accept: 'application/json' } });
  if (!answer.ok) throw new Error((await answer.json()).error?.message ?? `The node answered with ${answer.status}.`);
}

/** Renews the worker's script, which is of a build, and the session that the node knows a subscribed browser by. */
export async function renewPush() {
  try {
    if (!isPossible || !localStorage.getItem(key)) return;
    const made = await subscription();
    if (!made) return;
    await register();
    if (localStorage.getItem(key) !== home) await tell(made);
  } catch { /* the page of the devices tells */ }
}

/** Ends the subscription. */
export async function unsubscribe() {
  localStorage.removeItem(key);
  await (await subscription())?.unsubscribe();
}
