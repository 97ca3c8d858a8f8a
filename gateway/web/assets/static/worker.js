// The shared worker of all tabs: one stream of events for each reader. A browser has six connections to a node, and each
// stream occupies one.

import { Hub } from './hub.js';
import { hold } from './lock.js';

const hubs = new Map(); // by reader

function hubOf(reader) {
  if (!hubs.has(reader)) hubs.set(reader, new Hub(reader));
  return hubs.get(reader);
}

// A tab that acquires this lock knows that the worker has ended.
const life = 'parley.worker.' + crypto.randomUUID();
const lives = new Promise((resolve) => { hold(life, 'exclusive', resolve); });

function enter(port, data) {
  const hub = hubOf(data.reader);
  const page = { ...data, tell: (name, what) => port.postMessage([name, what]) };
  const leave = () => {
    hub.leave(page);
    if (hub.pages.size === 0 && hubs.get(data.reader) === hub) hubs.delete(data.reader);
  };
  const gone = hold(data.lock, 'shared', () => { leave(); gone(); }); // the tab holds it until it ends
  hub.join(page);
  return leave;
}

addEventListener('connect', ({ ports: [port] }) => {
  let leave;
  port.onmessage = ({ data }) => {
    leave?.();
    leave = data ? enter(port, data) : undefined;
  };
  lives.then(() => port.postMessage(['life', life]));
});
