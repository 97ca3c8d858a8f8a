// Text from others, safe to read: what does not show itself stands as an escape.

const hidden = /[\p{Cc}\p{Cf}\p{Co}\p{Cs}\p{Zl}\p{Zp}\p{Noncharacter_Code_Point}\p{Default_Ignorable_Code_Point}\u2800]/gu;
const choosers = /[\ufe0e\ufe0f]/; // between text and emoji

export function visible(text) {
  return String(text).replace(hidden, (c) => (choosers.test(c) ? c : `\\u{${c.codePointAt(0).toString(16)}}`));
}
