// Makes text from others safe to read: it escapes invisible characters.

const hidden = /[\p{Cc}\p{Cf}\p{Co}\p{Cs}\p{Zl}\p{Zp}\p{Noncharacter_Code_Point}\p{Default_Ignorable_Code_Point}\u2800]/gu;
const selectors = /[\ufe0e\ufe0f]/; // between text and emoji

export function visible(text) {
  return String(text).replace(hidden, (c) => (selectors.test(c) ? c : `\\u{${c.codePointAt(0).toString(16)}}`));
}
