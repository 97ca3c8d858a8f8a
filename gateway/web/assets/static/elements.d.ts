// Types of /elements.js.

/** What a field may have in it. An integer that a number cannot tell is a bigint, which JSON.stringify does not take. */
export type Value = null | boolean | number | bigint | string | Value[] | { [name: string]: Value };

export interface FieldOption { value: string; label?: string; description?: string }

export interface FormField {
  name: string;
  label?: string;
  type?: '' | 'text' | 'textarea' | 'number' | 'checkbox' | 'select' | 'multiselect' | 'radio' | 'buttons' | 'confirm' | 'date' | 'url' | 'secret' | 'capability' | 'file';
  required?: boolean;
  default?: Value;
  placeholder?: string;
  help?: string;
  options?: FieldOption[];
  example?: Value;
  pattern?: unknown;
}

/** What became of a form. */
export interface Outcome {
  status: 'answered' | 'declined' | 'cancelled' | 'expired' | 'superseded';
  form?: string;
  promise?: string;
  by?: string;
  byName?: string;
  at?: string;
  note?: string;
  values?: Record<string, Value>;
  order?: string[];
}

export interface FormEvents {
  /** An answer is about to be sent. Whoever prevents it sends it, or not. Secrets are in its values. */
  submit: CustomEvent<{ form: string; values: Record<string, Value> }>;
  /** The form is about to be declined. */
  cancel: CustomEvent<{ form: string; reason: string }>;
  /** The form has ended, here or elsewhere. */
  settled: CustomEvent<{ form: string; outcome: Outcome }>;
}

export {}; // and nothing but what says so

/** What both elements have. */
declare class MailElement extends HTMLElement {
  /** The path under which a proxy has the node; '' if it has none. */
  base: string;
  /** The name of an agent that the host holds; '' is who is signed in. */
  as: string;
  /** A bearer token in place of the browser's session. What is set here does not show in the document. */
  token: string;
  /** Whether nothing of what is typed is kept over a reload. */
  noDraft: boolean;
  addEventListener<K extends keyof FormEvents>(type: K, listener: (event: FormEvents[K]) => void, options?: boolean | AddEventListenerOptions): void;
  addEventListener(type: string, listener: EventListenerOrEventListenerObject, options?: boolean | AddEventListenerOptions): void;
}

/** `<parley-form form base token as no-draft>` */
export class ParleyFormElement extends MailElement {
  /** A message's ID or number. */
  form: string;
}

/** `<parley-questions base token as no-draft>`: its events are those of its forms. */
export class ParleyQuestionsElement extends MailElement {}

/** Why the node did not do what it was asked. */
export class Refused extends Error {
  constructor(error: { code: string; message: string; hint?: string; fields?: Record<string, string> }, status: number);
  code: string;
  hint: string;
  fields: Record<string, string>;
  status: number;
}

/** Says what is wrong with the values of an answer, by field. Nothing is if it is empty. Patterns the node alone checks. */
export function validateValues(fields: FormField[], values: Record<string, Value | undefined>): Record<string, string>;

/** Reads what was typed for a field as its type says. */
export function readTexts(field: FormField, texts: string[]): Value;

declare global {
  interface HTMLElementTagNameMap {
    'parley-form': ParleyFormElement;
    'parley-questions': ParleyQuestionsElement;
  }
}
