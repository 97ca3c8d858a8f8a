/**
 * Parses JSON. An integer that a number cannot hold exactly is a bigint.
 *
 * @param {string} text
 * @returns {any}
 */
export function parse(text: string): any;
/**
 * Writes JSON. A bigint is the integer that it is.
 *
 * @param {unknown} value
 * @returns {string}
 */
export function stringify(value: unknown): string;
