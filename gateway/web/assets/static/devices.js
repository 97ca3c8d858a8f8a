// The page of the devices: has this browser told by push, or not any more.

import { isPossible, post, subscribe, subscription, top, unsubscribe } from './push.js';

const root = document.getElementById('devices');
const button = document.getElementById('push');
const state = document.getElementById('push-state');

/** Returns the row of this browser, or undefined. */
async function row() {
  const made = await subscription();
  if (!made) return undefined;
  const sum = new Uint8Array(await crypto.subtle.digest('SHA-256', new TextEncoder().encode(made.endpoint)));
  const mark = [...sum].map((b) => b.toString(16).padStart(2, '0')).join('');
  return root.querySelector(`[data-mark="${mark}"]:not([data-gone])`) ?? undefined;
}

async function on() {
  if (await Notification.requestPermission() !== 'granted') throw new Error('The browser lets this page show no notifications: its settings for this site say so.');
  await subscribe(root.dataset.key);
  try { localStorage.setItem('parley.notify', 'no'); } catch { /* an open page tells too, then */ }
}

async function off(own) {
  await unsubscribe();
  await post({ drop: own.querySelector('button').value });
}

async function start() {
  if (!isSecureContext) state.textContent = 'Push needs https, or a page on this machine. This page has neither.';
  else if (!isPossible) state.textContent = 'This browser takes no push. On an iPhone or iPad, add Parley to the home screen first.';
  else {
    const own = await row();
    if (own) {
      state.textContent = `This browser is told by push: it is ${own.querySelector('bdi').textContent}.`;
      button.textContent = 'Notify this browser no more';
      button.classList.remove('primary');
    }
    button.hidden = false;
    button.addEventListener('click', async () => {
      button.disabled = true;
      try {
        await (own ? off(own) : on());
        location.reload();
      } catch (why) {
        state.textContent = why.message;
        button.disabled = false;
      }
    });
  }
}

for (const address of root.querySelectorAll('input[name=address]')) address.value = location.origin + top;
start();
