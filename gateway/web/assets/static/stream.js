// Follows the node's events. A lost connection is resumed at its cursor: no event is lost or repeated.

import { Hub, lost } from './hub.js';
import { hold } from './lock.js';
import { away } from './rpc.js';

/**
 * Follows the node's events.
 * @param {{reader: string, as: string, cursor: string, output?: string}} from with the name of an agent whose output is followed
 * @param {Record<string, (what: any) => void>} handlers by the name of the event
 */
export function follow(from, handlers) {
  const page = { ...from, wantsAgents: 'agents' in handlers, tell };
  function tell(name, what) {
    if (name === 'messages') page.cursor = String(what.cursor);
    if (name === 'state') showState(what);
    else handlers[name]?.(what);
  }
  const isShared = 'SharedWorker' in globalThis && 'locks' in navigator;
  const source = isShared ? shared(page) : alone(page);
  source.join();
  addEventListener('pagehide', () => source.leave());
  addEventListener('pageshow', (e) => { if (e.persisted) source.join(); });
}

/** Shows the state of the connection; '' is a good one. Decisions are off without one: nothing is queued. */
function showState(state) {
  document.getElementById('connection').textContent = state;
  const strip = document.getElementById('offline');
  if (strip) {
    const words = strip.querySelector('.grow');
    strip.dataset.lost ??= words.textContent;
    words.textContent = state === lost ? strip.dataset.lost : state; // a narrow window has no other place for it
    strip.hidden = state === '';
  }
  document.documentElement.toggleAttribute('data-offline', state === lost);
  if (state !== '') return;
  for (const p of document.querySelectorAll('.failure')) {
    if (!away.includes(p.textContent)) continue;
    p.textContent = '';
    p.closest('.toast')?.remove();
  }
}

const pause = 1000; // milliseconds until the node is tried again
const mostFailures = 2; // of a worker that the node serves, after which it is of another release of the node

/** Reports whether the node answers. */
const answers = (address) => fetch(address, { cache: 'no-store' }).then(() => true, () => false);

/** Follows through the shared worker of all tabs. */
function shared(page) {
  let leave;
  let failures = 0;

  /** Joins again once the node answers: it was away as the worker was to be loaded. */
  async function again(address) {
    let isOver = false;
    leave = () => { isOver = true; };
    if (++failures > mostFailures) {
      page.tell('state', 'Not live: reload to see what is new');
      return;
    }
    page.tell('state', lost);
    while (!isOver && !await answers(address)) {
      failures = 1;
      await new Promise((resolve) => { setTimeout(resolve, pause); });
    }
    if (!isOver) join();
  }

  function join() {
    const address = new URL('./worker.js', import.meta.url);
    const worker = new SharedWorker(address, { type: 'module', name: 'parley' });
    const { port } = worker;
    const lock = 'parley.tab.' + crypto.randomUUID();
    const { reader, as, wantsAgents, cursor, output } = page;
    const goes = hold(lock, 'exclusive', () => port.postMessage({ reader, as, wantsAgents, cursor, output, lock })); // released in every case, so that the worker notices the end
    let outlived = () => {};
    leave = () => {
      port.onmessage = null;
      port.postMessage(null);
      port.close();
      goes();
      outlived();
    };
    worker.onerror = () => {
      leave();
      again(address);
    };
    port.onmessage = ({ data: [name, what] }) => {
      failures = 0;
      if (name === 'life') outlived = hold(what, 'shared', () => { leave(); join(); }); // it is free once the worker has died
      else page.tell(name, what);
    };
  }
  return { join, leave: () => leave() };
}

/** Follows through a stream of this tab while it is visible: a browser has few connections. */
function alone(page) {
  const hub = new Hub(page.reader);
  const look = () => (document.hidden ? hub.leave(page) : hub.join(page));
  return {
    join() { document.addEventListener('visibilitychange', look); look(); },
    leave() { document.removeEventListener('visibilitychange', look); hub.leave(page); },
  };
}
