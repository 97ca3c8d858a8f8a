package capabilities

import (
	"bytes"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/vmihailenco/msgpack/v5"

	"parley/internal/fault"
	"parley/internal/pack"
)

// Locator is an ID for use outside a node. It has the kind of its target, and hints where its node may be reached.
// Hints are not part of identity: locators with equal IDs locate the same thing.
//
// Its text is parley://{node}/{ulid}?type=promise&at=nats://host:port, with one "at" for each hint. The locator of an
// invitation also holds a secret. No other locator has to be kept from others.
type Locator struct {
	ID     ID
	Kind   Kind
	Hints  []string
	Secret string
}

// KindInvitation is the kind in the locator of an invitation. No reference is of this kind.
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

// IsLocator reports whether s begins as a locator does. It may be malformed.
func IsLocator(s string) bool { return strings.HasPrefix(s, locatorScheme+"://") }

// IsTarget reports whether s is an ID or a locator. It may be malformed.
func IsTarget(s string) bool { return strings.Contains(s, "@") || IsLocator(s) }

// ParseTarget parses an ID, or the ID in a locator. It refuses with INVALID_ARGUMENT.
func ParseTarget(s string) (ID, error) {
	if IsLocator(s) {
		l, err := ParseLocator(s)
		return l.ID, err
	}
	return ParseID(s)
}

// ParseLocator parses a locator of at most 4 KiB and 8 hints. It refuses with INVALID_ARGUMENT.
func ParseLocator(s string) (Locator, error) {
	bad := func(why string) (Locator, error) {
		return Locator{}, fault.Refuse(fault.InvalidArgument, "not a locator: %s", why).
			WithHint("a locator looks like parley://NODE/ULID?type=agent")
	}
	if len(s) > maxLocatorSize {
		return bad("too long")
	}
	u, err := url.Parse(s)
	if err != nil || u.Scheme != locatorScheme || u.User != nil || u.Opaque != "" || strings.Contains(s, "#") { // not even an empty fragment
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

// Kind is the kind of a reference's target.
type Kind string

// The kinds of targets.
const (
	KindAgent    Kind = "agent"
	KindForm     Kind = "form"
	KindMessage  Kind = "message"
	KindPromise  Kind = "promise"
	KindResolver Kind = "resolver"
	KindGrant    Kind = "grant"
	KindBlob     Kind = "blob"
	KindNode     Kind = "node"

	KindFolder Kind = "folder" // these four are resources: see IsResource
	KindFile   Kind = "file"
	KindSecret Kind = "secret"
	KindTool   Kind = "tool"
)

// IsResource reports whether k is a kind of resource: something that a node's host has made and named, and that its holders
// invoke.
func (k Kind) IsResource() bool {
	switch k {
	case KindFolder, KindFile, KindSecret, KindTool:
		return true
	}
	return false
}

// KnownKind reports whether k is one of the kinds.
func KnownKind(k Kind) bool {
	switch k {
	case KindAgent, KindForm, KindMessage, KindPromise, KindResolver, KindGrant, KindBlob, KindNode:
		return true
	}
	return k.IsResource()
}

// Ref is a reference to a target: its kind, how much of it is held, and by which grant. A zero Grant means that nobody
// gave the reference: the holder made the target, or was made with it.
//
// Root is the grant that the target's home knows, if that is not Grant. Grant was derived from Root within the holder's
// node then, without telling the home.
//
// A Ref is authority only if the log of a mailbox shows that its agent holds it. Refs are comparable.
type Ref struct {
	Target ID
	Kind   Kind
	Facet  Facet
	Grant  ID
	Root   ID
}

// Known returns the grant by which the target's home knows the holder's node; zero if there is none.
func (r Ref) Known() ID {
	if !r.Root.IsZero() {
		return r.Root
	}
	return r.Grant
}

// Bare returns the reference without its root, as its grant made it.
func (r Ref) Bare() Ref {
	r.Root = ID{}
	return r
}

// The encoding of a Ref: three IDs and a facet take some 200 bytes, and the limits of a resource up to 3,200 more.
const (
	usualRefSize = 512
	maxRefSize   = 4 << 10
)

// AppendMsgpack appends extension 2: [target, kind, mode, until, uses, grant], then root if there is one, which is nil if there is
// none, and then the facet as a whole if it has limits that only resources have.
func (r Ref) AppendMsgpack(b []byte) []byte {
	in := r.Target.AppendMsgpack(make([]byte, 0, usualRefSize))
	in = pack.AppendString(pack.AppendString(in, string(r.Kind)), string(r.Facet.Mode))
	in = pack.AppendUint(pack.AppendInt(in, int64(r.Facet.Until)), uint64(r.Facet.Uses))
	in = r.Grant.AppendMsgpack(in)
	wide := r.Facet.ofResource()
	if wide || !r.Root.IsZero() {
		in = r.Root.AppendMsgpack(in)
	}
	if wide {
		in = r.Facet.AppendMsgpack(in)
	}
	return append(pack.AppendExt(b, extRef, len(in)), in...)
}

// EncodeMsgpack encodes what AppendMsgpack appends.
func (r Ref) EncodeMsgpack(enc *msgpack.Encoder) error {
	room := rooms.Get().(*room)
	room.b = r.AppendMsgpack(room.b[:0])
	return room.encode(enc)
}

// DecodeMsgpack reads extension 2.
func (r *Ref) DecodeMsgpack(dec *msgpack.Decoder) error {
	id, n, err := dec.DecodeExtHeader()
	if err != nil {
		return err
	}
	if id != extRef {
		return fmt.Errorf("%w: extension %d, want a reference", errMalformed, id)
	}
	return r.decodeBody(dec, n)
}

func (r *Ref) decodeBody(dec *msgpack.Decoder, n int) error {
	if n <= 0 || n > maxRefSize {
		return fmt.Errorf("%w: reference of %d bytes", errMalformed, n)
	}
	body := make([]byte, n)
	if err := dec.ReadFull(body); err != nil {
		return err
	}
	var (
		rd         = bytes.NewReader(body)
		in         = msgpack.NewDecoder(rd)
		kind, mode string
		until      int64
		got        Ref
	)
	if err := in.DecodeMulti(&got.Target, &kind, &mode, &until, &got.Facet.Uses, &got.Grant); err != nil {
		return fmt.Errorf("reference: %w", err)
	}
	got.Kind, got.Facet.Mode, got.Facet.Until = Kind(kind), Mode(mode), Time(until)
	if rd.Len() != 0 {
		if err := got.Root.DecodeMsgpack(in); err != nil || got.Root.IsZero() && rd.Len() == 0 {
			return fmt.Errorf("%w: reference", errMalformed)
		}
	}
	if rd.Len() != 0 {
		plain := got.Facet
		if err := got.Facet.DecodeMsgpack(in); err != nil || !got.Facet.ofResource() || plain != (Facet{Mode: plain.Mode, Until: got.Facet.Until, Uses: got.Facet.Uses}) || plain.Mode != got.Facet.Mode {
			return fmt.Errorf("%w: reference", errMalformed)
		}
	}
	if rd.Len() != 0 || got.Target.IsZero() || !KnownKind(got.Kind) || got.Facet.Check() != nil {
		return fmt.Errorf("%w: reference", errMalformed)
	}
	*r = got
	return nil
}
