// How an app uses the elements. It is compiled, and never run.

import { type FormField, type Outcome, Refused, readTexts, validateValues } from './elements.js';

const shown = document.createElement('parley-form');
shown.form = '12';
shown.base = '/parley';
shown.noDraft = true;
shown.token = 'secret';
shown.addEventListener('submit', (e) => {
  const text: string = `${e.detail.form}: ${Object.keys(e.detail.values).join()}`;
  if (text === '') e.preventDefault();
});
shown.addEventListener('cancel', (e) => console.log(e.detail.reason.length));
shown.addEventListener('settled', (e) => {
  const outcome: Outcome = e.detail.outcome;
  if (outcome.status === 'answered') console.log(outcome.byName, outcome.at, outcome.values?.port);
});
document.querySelector('parley-questions')!.as = 'fae';

const fields: FormField[] = [{ name: 'port', type: 'number', required: true }];
const wrong: Record<string, string> = validateValues(fields, { port: readTexts(fields[0]!, ['80']) });
const why = new Refused({ code: 'NOT_A_FORM', message: wrong.port ?? '' }, 404);
console.log(why.code, why.fields.port);

// @ts-expect-error: there is no such type of field
const field: FormField = { name: 'x', type: 'colour' };
// @ts-expect-error: there is no such status
const status: Outcome['status'] = 'open';
// @ts-expect-error: questions are not about one form
document.createElement('parley-questions').form = '12';
console.log(field, status);
