package capabilities

import (
	"net/url"
	"slices"
	"strings"

	"parley"
)

// Locator is an ID for use outside a node, with the kind of its target and hints where its node may be
// reached. Hints are no part of identity: two locators with the same ID locate the same thing.
//
// Its text is parley://{node}/{ulid}?type=promise&at=nats://host:port, with "at" as often as needed.
//
// That of an invitation has a secret too, and is the one locator that is to be kept from others.
type Locator struct {
	ID     ID
	Kind   Kind
	Hints  []string
	Secret string
}

// KindInvitation is what the locator of an invitation says. No reference is of this kind: an invitation is
// used, not held.
const KindInvitation Kind = "invitation"

const (
	locatorScheme  = "parley"
	maxLocatorSize = 4096
	maxHints       = 8
)

// String returns the locator as a parley:// URL.
func (l Locator) String() string {
	q := url.Values{}
	if l.Kind != "" {
		q.Set("type", string(l.Kind))
	}
	for _, h := range l.Hints {
		q.Add("at", h)
	}
	if l.Secret != "" {
		q.Set("secret", l.Secret)
	}
	u := url.URL{Scheme: locatorScheme, Host: l.ID.Node.String(), Path: "/" + l.ID.ULID.String(), RawQuery: q.Encode()}
	return u.String()
}

// IsLocator reports whether s is meant as a locator, well formed or not.
func IsLocator(s string) bool { return strings.HasPrefix(s, locatorScheme+"://") }

// ParseLocator reads a locator of at most 4 KiB and 8 hints. It refuses with INVALID_ARGUMENT.
func ParseLocator(s string) (Locator, error) {
	bad := func(why string) (Locator, error) {
		return Locator{}, parley.Refuse(parley.InvalidArgument, "not a locator: %s", why).
			WithHint("a locator looks like parley://NODE/ULID?type=agent")
	}
	if len(s) > maxLocatorSize {
		return bad("too long")
	}
	u, err := url.Parse(s)
	if err != nil || u.Scheme != locatorScheme || u.User != nil || u.Opaque != "" || strings.Contains(s, "#") { // no fragment, be it empty
		return bad("malformed")
	}
	node, err := ParseNodeID(u.Host)
	if err != nil {
		return bad("its host is not a node's key")
	}
	id, err := parseULID(strings.TrimPrefix(u.Path, "/"))
	if err != nil {
		return bad("its path is not a ULID")
	}
	q, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		return bad("malformed query")
	}
	l := Locator{ID: ID{ULID: id, Node: node}, Kind: Kind(q.Get("type")), Hints: slices.Clone(q["at"])}
	if l.Kind == KindInvitation {
		l.Secret = q.Get("secret")
	} else if l.Kind != "" && !KnownKind(l.Kind) {
		return bad("unknown type")
	}
	if len(l.Hints) > maxHints {
		return bad("too many hints")
	}
	return l, nil
}
