package api

import (
	"cmp"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"unicode/utf8"

	"parley"
	"parley/capabilities"
)

// MaxDepth bounds the nesting of objects and lists in a request, values included.
const MaxDepth = 48

// BodyFree is the number of bytes of a request that are not charged.
const BodyFree = 16 << 10

// TooLarge returns the refusal of a request of more than MaxBody bytes.
func TooLarge() error {
	return parley.Refuse(parley.TooLarge, "a request may have %d bytes at most", MaxBody)
}

// TooDeep returns the refusal of a request that is nested too deeply.
func TooDeep() error {
	return parley.Refuse(parley.TooLarge, "a request may be nested %d deep at most", MaxDepth)
}

// CheckBody refuses a request that is nested too deeply or is not valid UTF-8. A decoder would silently replace invalid
// characters.
func CheckBody(body []byte) error {
	if !utf8.Valid(body) {
		return parley.Refuse(parley.InvalidArgument, "the request is not valid UTF-8")
	}
	if capabilities.Nesting(body) > MaxDepth {
		return TooDeep()
	}
	return nil
}

// Decode reads a request. No body is the empty request.
func Decode(body []byte, req any) error {
	if len(body) == 0 {
		return nil
	}
	err := json.Unmarshal(body, req)
	if err == nil {
		return nil
	}
	if parley.CodeOf(err) != parley.Internal { // the refusal of a type that decodes itself
		return err
	}
	if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		return WrongType(wrong)
	}
	return parley.Refuse(parley.InvalidArgument, "the request is not JSON: %v", err)
}

// WrongType refuses a value of another type than its member has, with that as the request calls it: the decoder puts the names of types that the
// request is made of before it, as in Post.Header.ackBy.
func WrongType(wrong *json.UnmarshalTypeError) *parley.Error {
	parts := strings.Split(wrong.Field, ".")
	parts = slices.DeleteFunc(parts, func(name string) bool { return name == "" || name[0] >= 'A' && name[0] <= 'Z' })
	article := "a"
	if strings.HasPrefix(wrong.Value, "array") || strings.HasPrefix(wrong.Value, "object") {
		article = "an"
	}
	return parley.Refuse(parley.InvalidArgument, "%s: %s %s does not belong there", cmp.Or(strings.Join(parts, "."), "the request"), article, wrong.Value)
}
