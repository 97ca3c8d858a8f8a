// What changes, as it does. A connection that ends is taken up where it was: nothing is lost and nothing comes twice.

import { call } from './rpc.js';

const pause = 1000;

/**
 * Follows the node's events.
 * @param {{as: string, cursor: string}} from
 * @param {Record<string, (what: any) => void>} handlers by the name of the event
 */
export function follow(from, handlers) {
  let { cursor } = from;
  let source;
  let again = 0;
  const say = (text) => { document.getElementById('connection').textContent = text; };

  function open() {
    const query = new URLSearchParams({ ...(from.as && { as: from.as }), ...(cursor && { cursor }) });
    source = new EventSource('/events?' + query);
    source.onopen = () => say('');
    source.onerror = lost;
    for (const [name, handle] of Object.entries(handlers)) {
      source.addEventListener(name, (e) => {
        if (name === 'messages') cursor = e.lastEventId;
        handle(JSON.parse(e.data));
      });
    }
  }

  async function lost() {
    say('Reconnecting…');
    if (source.readyState !== EventSource.CLOSED) return; // the browser tries again itself
    clearTimeout(again);
    try {
      await call('list_names', { as: from.as });
    } catch (refused) {
      if (refused.code === 'UNAUTHENTICATED') return say('Signed out: run parley open');
    }
    again = setTimeout(open, pause);
  }

  open();
  addEventListener('pagehide', () => { source.close(); clearTimeout(again); });
  addEventListener('pageshow', (e) => { if (e.persisted) open(); });
}
