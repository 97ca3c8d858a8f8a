// What changes, as it does. A connection that ends is taken up where it was: nothing is lost and nothing comes twice.

import { Hub } from './feed.js';

/**
 * Follows the node's events.
 * @param {{reader: string, as: string, cursor: string}} from
 * @param {Record<string, (what: any) => void>} handlers by the name of the event
 */
export function follow(from, handlers) {
  const page = { ...from, stirs: 'stirred' in handlers, tell };
  function tell(name, what) {
    if (name === 'messages') page.cursor = String(what.cursor);
    if (name === 'state') document.getElementById('connection').textContent = what;
    else handlers[name]?.(what);
  }
  const isShared = 'SharedWorker' in globalThis && 'locks' in navigator;
  const way = isShared ? shared(page) : alone(page);
  way.join();
  addEventListener('pagehide', () => way.leave());
  addEventListener('pageshow', (e) => { if (e.persisted) way.join(); });
}

/** The stream is the worker's, which all tabs share. */
function shared(page) {
  let stay; // until then the tab is there
  const aborted = () => {}; // a request for a lock that is no longer wanted

  function join() {
    stay = new AbortController();
    const { signal } = stay;
    const lock = 'parley.tab.' + crypto.randomUUID();
    const worker = new SharedWorker(new URL('./worker.js', import.meta.url), { type: 'module', name: 'parley' });
    const { port } = worker;
    worker.onerror = () => page.tell('state', 'Not live: reload to see what is new');
    port.onmessage = ({ data: [name, what] }) => {
      if (signal.aborted) return;
      if (name === 'life') outlive(what, signal);
      else page.tell(name, what);
    };
    signal.addEventListener('abort', () => { port.postMessage(null); port.close(); });
    navigator.locks.request(lock, { signal }, () => { // the worker sees by it that the tab has gone, however it went
      const { reader, as, stirs, cursor } = page;
      port.postMessage({ reader, as, stirs, cursor, lock });
      return new Promise((resolve) => { signal.addEventListener('abort', resolve); });
    }).catch(aborted);
  }

  /** Joins anew if the worker dies, whose lock is then free. */
  function outlive(life, signal) {
    navigator.locks.request(life, { mode: 'shared', signal }, () => { leave(); join(); }).catch(aborted);
  }

  const leave = () => stay.abort();
  return { join, leave };
}

/** The stream is this tab's, for as long as somebody looks: a browser has few connections. */
function alone(page) {
  const hub = new Hub(page.reader);
  const look = () => (document.hidden ? hub.leave(page) : hub.join(page));
  return {
    join() { document.addEventListener('visibilitychange', look); look(); },
    leave() { document.removeEventListener('visibilitychange', look); hub.leave(page); },
  };
}
