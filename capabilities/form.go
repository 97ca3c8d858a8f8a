package capabilities

import (
	"strconv"
	"strings"

	"parley/internal/fault"
)

// FormRef identifies a form or other message of a mailbox: by its number there, by its ID, or by the ID of its promise
// or resolver. FormRefs are comparable. The zero FormRef identifies nothing.
type FormRef struct {
	id     ID
	number uint64
	kind   formRefKind
}

// formRefKind tells how a FormRef names a form.
type formRefKind uint8

const (
	formByNumber formRefKind = 1 + iota
	formByID
)

// FormNumber returns the FormRef of the form or message with a number.
func FormNumber(n uint64) FormRef { return FormRef{number: n, kind: formByNumber} }

// FormID returns the FormRef of the form or message with an ID.
func FormID(id ID) FormRef { return FormRef{id: id, kind: formByID} }

// ParseFormRef parses a number, with or without "#", an ID or a locator. It refuses with INVALID_ARGUMENT.
func ParseFormRef(s string) (FormRef, error) {
	s = strings.TrimPrefix(s, "#")
	if n, ok := parseNumber(s); ok {
		return FormNumber(n), nil
	}
	id, err := ParseTarget(s)
	if err != nil {
		return FormRef{}, fault.Refuse(fault.InvalidArgument, "%.120q is neither a message's number nor an ID", s)
	}
	return FormID(id), nil
}

// parseNumber parses a number without leading zeros. A truncated ID or digest is not one.
func parseNumber(s string) (uint64, bool) {
	if len(s) > 20 || len(s) > 1 && s[0] == '0' { // 64 bits have 20 digits at most; an ID is longer
		return 0, false
	}
	n, err := strconv.ParseUint(s, 10, 64)
	return n, err == nil
}

// IsZero reports whether r is the zero FormRef.
func (r FormRef) IsZero() bool { return r.kind == 0 }

// Number returns the number, and reports whether r has one.
func (r FormRef) Number() (uint64, bool) { return r.number, r.kind == formByNumber }

// ID returns the ID, which is zero if r has a number.
func (r FormRef) ID() ID { return r.id }

// String returns the number or ID as ParseFormRef reads it.
func (r FormRef) String() string {
	switch r.kind {
	case formByNumber:
		return strconv.FormatUint(r.number, 10)
	case formByID:
		return r.id.String()
	}
	return ""
}
