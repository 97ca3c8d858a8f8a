// Keeps the agents in the left pane current.

import { renew } from './renew.js';
import { page } from './rpc.js';

const pause = 1000; // between two updates

let wanted = false;
let looks = false;

export async function leftChanged() {
  wanted = true;
  const pane = document.getElementById('left-agents');
  if (looks || !pane) return;
  looks = true;
  while (wanted) {
    wanted = false;
    try {
      const doc = await page('/agents?pane=left');
      const next = doc.getElementById('left-agents');
      if (next) renew(document.getElementById('left-agents'), next);
      for (const id of ['snoozed', 'unread']) document.getElementById(id).replaceWith(document.adoptNode(doc.getElementById(id)));
    } catch {
      // the stream of events updates it once the node is back
    }
    await new Promise((resolve) => { setTimeout(resolve, pause); });
  }
  looks = false;
}
