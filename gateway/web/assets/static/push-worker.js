// Shows what push services deliver, and answers by the buttons of a notification. It keeps nothing, and fetches nothing
// but the node's addresses that answer: its policy allows no other origin. All texts are shown as texts.

const top = new URL('../', registration.scope);

addEventListener('install', () => skipWaiting());

/** Shows a notification in place of what was told before. Another body is not kept. */
const show = (told, body = told.body) => registration.showNotification(told.title, {
  body, tag: told.tag, data: told, icon: 'icon-192.png', silent: !told.open, renotify: told.open, requireInteraction: told.answers.length > 0,
  actions: told.answers.map(({ outcome, label }) => ({ action: outcome, title: label })),
});

addEventListener('push', (e) => { e.waitUntil(show({ answers: [], ...e.data.json() })); });

/** Answers by a button, and shows how that went in place of the notification. */
async function answer(told, by) {
  const is = { ...told, open: false, answers: [] };
  try {
    const answered = await fetch(by.url, {
      method: 'POST', headers: { Accept: 'application/json' }, credentials: 'omit', redirect: 'error', referrerPolicy: 'no-referrer',
    });
    const { title, text, error } = await answered.json();
    await show(is, answered.ok ? [title, text].filter(Boolean).join('. ') : `Not answered: ${error.message}`);
  } catch {
    await show(told, `Not answered: the node could not be reached. ${told.body}`);
  }
}

addEventListener('notificationclick', (e) => {
  const { notification: { data: told }, action } = e;
  const by = told.answers.find((a) => a.outcome === action);
  e.notification.close();
  e.waitUntil(by ? answer(told, by) : clients.openWindow(new URL(told.page, top)));
});
