package rule

import (
	"encoding/json"
	"strconv"
	"strings"
)

// Amounts are counted in millionths, so that they add up exactly.
const (
	millionths   = 6         // digits behind the point
	million      = 1_000_000 // of them are one
	maxWholePart = 12        // digits
)

// ParseAmount reads an amount as JSON writes a plain number: digits, at most 12, and perhaps a point and at most 6 more. It reports false
// for all else: no sign and no exponent, nothing that would be rounded.
func ParseAmount(text string) (int64, bool) {
	whole, part, point := strings.Cut(text, ".")
	switch {
	case whole == "" || len(whole) > maxWholePart || len(whole) > 1 && whole[0] == '0':
		return 0, false
	case point && part == "" || len(part) > millionths:
		return 0, false
	case strings.Trim(whole+part, "0123456789") != "":
		return 0, false
	}
	n, err := strconv.ParseInt(whole+part+strings.Repeat("0", millionths-len(part)), 10, 64)
	return n, err == nil
}

// AmountText returns an amount as ParseAmount reads it, in its shortest form.
func AmountText(n int64) string {
	whole, part := n/million, n%million
	if part == 0 {
		return strconv.FormatInt(whole, 10)
	}
	digits := strconv.FormatInt(million+part, 10)[1:]
	return strconv.FormatInt(whole, 10) + "." + strings.TrimRight(digits, "0")
}

// Amount returns the amount of a member of a call's input. It reports false if the input is no object, or has no such member, or another
// one whose name differs in the case of letters alone, or if the member is no plain number: a text, a list, one below zero or too large.
func Amount(input, member string) (int64, bool) {
	var fields map[string]json.RawMessage
	if json.Unmarshal([]byte(input), &fields) != nil {
		return 0, false
	}
	for key := range fields {
		if key != member && strings.EqualFold(key, member) { // a program may take either
			return 0, false
		}
	}
	return ParseAmount(string(fields[member]))
}
