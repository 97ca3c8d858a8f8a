// Package right keeps the rights to answer single forms that an agent gave away. Whoever shows the secret of a right
// answers the form in the agent's place. The answer is one of the outcomes that the right names.
//
// A ledger promises that a derived right has no outcome, time or use that its parent lacks; that a use counts for all
// rights it derives from; that repeating the last use counts once; and that revoking a right ends all derived from it. The rights that derive
// from one are bounded, so that its bearer leaves room for others.
// It doesn't know the forms: its owner tells it which have ended.
package right
