// Holds the types to the module: what is declared is there and is of its type, and all that is there is declared.

import type * as declared from './elements.js';
import * as actual from './module/elements.js';

type Declared = typeof declared;

export const validateValues: Declared['validateValues'] = actual.validateValues;
export const readTexts: Declared['readTexts'] = actual.readTexts;
export const refused: new (...given: ConstructorParameters<Declared['Refused']>) => Error = actual.Refused;

type Own<T> = Exclude<keyof T, keyof HTMLElement>;
export const form: { [K in Own<declared.ParleyFormElement>]: declared.ParleyFormElement[K] } = new actual.ParleyFormElement();
export const questions: { [K in Own<declared.ParleyQuestionsElement>]: declared.ParleyQuestionsElement[K] } = new actual.ParleyQuestionsElement();

type Undeclared = Exclude<keyof typeof actual, keyof Declared>;
type Unmade = Exclude<keyof Declared, keyof typeof actual>;
export const allIsDeclared: [Undeclared, Unmade] extends [never, never] ? true : false = true;
