// Validates an answer before it is sent. The node checks everything again, and alone checks patterns. It needs no document,
// so that any program may use it.

import { types } from './types.js';

const isLeap = (y) => (y % 4 === 0 && y % 100 !== 0) || y % 400 === 0;
const days = [31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];

const isEmpty = (v) => v === undefined || v === null || v === '' || (Array.isArray(v) && v.length === 0);
const isOption = (field, v) => optionsOf(field).some((o) => o.value === v);
const cut = (s, n) => ([...s].length > n ? [...s].slice(0, n).join('') + '…' : s);

/** Returns the kind of control that asks for a field. */
function controlOf(field) {
  const row = types[field.type ?? ''];
  return row?.ticks && field.options?.length ? row.ticks : row?.asks;
}

const optionsOf = (field) => (field.options?.length ? field.options : (types[field.type ?? '']?.given ?? []));

function options(field) {
  const all = optionsOf(field);
  const values = all.slice(0, 10).map((o) => cut(o.value, 40));
  if (all.length > 10) values.push(`and ${all.length - 10} more`);
  return 'not one of the options: ' + values.join(', ');
}

function wrongDate(v) {
  if (typeof v !== 'string' || v.length !== 10 || /[^0-9-]/.test(v)) return 'want a date such as 2026-01-31';
  const m = /^(\d{4})-(\d{2})-(\d{2})$/.exec(v);
  if (!m) return 'there is no such date';
  const [year, month, day] = m.slice(1).map(Number);
  const last = month === 2 && isLeap(year) ? 29 : days[month - 1];
  return day >= 1 && day <= last ? '' : 'there is no such date';
}

function wrongURL(v) {
  const fits = typeof v === 'string' && /^https?:\/\/[^/]/i.test(v) && !/[\s\p{C}\p{Z}\p{Default_Ignorable_Code_Point}]/u.test(v) &&
    new TextEncoder().encode(v).length <= 2048 && URL.canParse(v);
  return fits ? '' : 'want an absolute http or https URL such as https://example.com, without spaces and of at most 2048 bytes';
}

/** The checks of texts, by their formats. */
const checks = { date: wrongDate, uri: wrongURL };

function wrongChoices(field, v) {
  if (!Array.isArray(v)) return 'want a list of options';
  for (const [i, one] of v.entries()) {
    if (!isOption(field, one)) return options(field);
    if (v.indexOf(one) !== i) return `${cut(one, 40)} is chosen twice`;
  }
  return '';
}

function wrong(field, v) {
  switch (controlOf(field)) {
    case 'number':
      return typeof v === 'bigint' || (typeof v === 'number' && Number.isFinite(v)) ? '' : 'want a number';
    case 'yesno':
      return typeof v === 'boolean' ? '' : 'want true or false';
    case 'choice':
      return isOption(field, v) ? '' : options(field);
    case 'choices':
      return wrongChoices(field, v);
    case 'reference':
      return typeof v === 'string' || typeof v?.$cap === 'string' ? '' : 'want a capability';
    case 'any':
      if (field.pattern) return '';
  }
  const check = checks[types[field.type ?? '']?.format];
  if (check) return check(v);
  return typeof v === 'string' ? '' : 'want text';
}

/**
 * Returns the errors in the values of an answer, by field name. An empty object means that all are valid.
 * @param {Array<{name: string, type?: string, required?: boolean, default?: any, options?: Array<{value: string}>, pattern?: any}>} fields
 * @param {Record<string, any>} values
 * @returns {Record<string, string>}
 */
export function validateValues(fields, values) {
  const errors = Object.create(null);
  for (const field of fields) {
    const given = Object.hasOwn(values, field.name);
    const v = given ? values[field.name] : field.default;
    if (isEmpty(v)) {
      if (field.required) errors[field.name] = 'required';
      continue;
    }
    const why = given ? wrong(field, v) : '';
    if (why) errors[field.name] = why;
  }
  const known = new Set(fields.map((f) => f.name));
  for (const name of Object.keys(values)) if (!known.has(name)) errors[name] = 'no such field';
  return errors;
}

/**
 * Parses the input of a field by its type. It returns malformed input unchanged, and validateValues refuses that.
 * @param {string[]} texts
 */
export function readTexts(field, texts) {
  const asks = controlOf(field);
  if (asks === 'choices') {
    return texts.length === 1 && texts[0] === '' ? [] : texts;
  }
  const text = texts[0] ?? '';
  if (text === '') return '';
  switch (asks) {
    case 'number': {
      const t = text.trim();
      if (/^[+-]?\d+$/.test(t)) return BigInt(t.replace('+', ''));
      return /^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$/.test(t) ? Number(t) : text;
    }
    case 'yesno':
      return { true: true, yes: true, on: true, false: false, no: false, off: false }[text.trim().toLowerCase()] ?? text;
  }
  return text;
}
