// The dialogs of the page.

/** Adds a dialog to the page, which is removed when it closes. */
export function dialog(name, label) {
  const d = document.createElement('dialog');
  d.className = name;
  d.setAttribute('aria-label', label);
  const back = document.activeElement;
  d.addEventListener('close', () => {
    d.remove();
    if (document.activeElement === document.body) back?.focus();
  });
  document.body.append(d);
  return d;
}

/** Asks whether to leave a form with input. It resolves to stay, keep or discard. */
export function askToLeave() {
  const back = document.activeElement;
  const dialog = document.createElement('dialog');
  dialog.className = 'leave';
  dialog.setAttribute('aria-labelledby', 'leave-head');
  dialog.innerHTML = `<form method="dialog"><h2 id="leave-head">Leave this form?</h2><p>It has not been sent. What you typed can stay here as a draft.</p>
    <div class="acts"><button value="stay" class="primary" autofocus>Stay</button><button value="keep">Keep the draft</button><button value="discard" class="danger">Discard it</button></div></form>`;
  document.body.append(dialog);
  dialog.showModal();
  return new Promise((resolve) => dialog.addEventListener('close', () => {
    const choice = dialog.returnValue || 'stay'; // Escape stays
    dialog.remove();
    if (choice === 'stay') back.focus();
    resolve(choice);
  }));
}
