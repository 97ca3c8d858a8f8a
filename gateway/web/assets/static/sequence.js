// A list whose parts are added, moved and removed by buttons: the fields of a form, or the options of a field.

export class Sequence {
  /**
   * @param {HTMLElement} list an element whose children are the parts
   * @param {string} what the name of one part
   * @param {(draft: object) => {element: HTMLElement, focus: () => void}} make
   * @param {(done: string) => void} changed receives a description of each change
   */
  constructor(list, what, make, changed) {
    Object.assign(this, { list, what, make, changed, parts: [] });
    list.addEventListener('click', (e) => this.pressed(e));
  }

  put(drafts) {
    this.parts = drafts.map(this.make);
    this.draw();
  }

  /** Adds a part after another one, or at the end, and focuses it. */
  add(draft, behind = this.parts.length - 1) {
    const part = this.make(draft);
    this.parts.splice(behind + 1, 0, part);
    this.draw();
    part.focus();
    this.changed(`${this.what} ${behind + 2} added`);
  }

  indexOf(element) { return this.parts.findIndex((p) => p.element.contains(element)); }

  pressed(event) {
    const button = event.target.closest('button[name=up], button[name=down], button[name=remove]');
    if (!button || button.closest('li').parentElement !== this.list) return; // the button belongs to a nested list
    const at = this.indexOf(button);
    if (button.name === 'remove') return this.remove(at);
    const to = button.name === 'up' ? at - 1 : at + 1;
    const [part] = this.parts.splice(at, 1);
    this.parts.splice(to, 0, part);
    this.draw();
    const other = part.element.querySelector(button.name === 'up' ? '[name=down]' : '[name=up]');
    (button.disabled ? other : button).focus(); // moving an element drops its focus
    this.changed(`${this.what} moved to ${to + 1} of ${this.parts.length}`);
  }

  remove(at) {
    this.parts.splice(at, 1);
    this.draw();
    const next = this.parts[at] ?? this.parts[at - 1];
    if (next) next.focus();
    else this.list.parentElement.querySelector('button[name=add]').focus();
    this.changed(`${this.what} ${at + 1} removed`);
  }

  draw() {
    this.list.replaceChildren(...this.parts.map((p) => p.element));
    for (const [i, { element }] of this.parts.entries()) {
      const [up, down, name] = ['[name=up]', '[name=down]', '.which'].map((s) => element.querySelector(s));
      up.disabled = i === 0;
      down.disabled = i === this.parts.length - 1;
      name.textContent = `${this.what} ${i + 1}`;
    }
  }
}

/** Markup of the buttons of a part. */
export const tools = `<div class="tools"><button type="button" name="up">Move up</button><button type="button" name="down">Move down</button><button type="button" name="remove">Remove</button></div>`;

/** Returns the element of trusted markup. */
export function element(markup) {
  const t = document.createElement('template');
  t.innerHTML = markup;
  return t.content.firstElementChild;
}
