/**
 * Reports whether a key press is for an input method, as for Japanese, Chinese or Korean. Safari ends a composition before the
 * key that confirms it, and marks that key by its code alone.
 */
export const composing = (event) => event.isComposing || event.keyCode === 229;
