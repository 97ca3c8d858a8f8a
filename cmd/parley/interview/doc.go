// Package interview has a person at a terminal answer a form, field by field.
//
// Everything in a form comes from its asker, and is made visible before it is shown. Answers are texts, which the node
// reads by the types of the fields: the package checks only that a required field has one.
package interview
