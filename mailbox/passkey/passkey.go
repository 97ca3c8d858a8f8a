package passkey

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"net/url"
	"strings"

	"parley"
	"parley/capabilities"
	"parley/events"
)

// Bounds of what browsers and devices send, in bytes.
const (
	MaxCredential = 1023 // by WebAuthn
	maxKey        = 1 << 10
	maxData       = 4 << 10 // of the browser, and of the device
	maxSignature  = 1 << 10
	maxStatement  = 4 << 10
	maxOrigin     = 300
)

// magic begins each statement. It is signed by no other program.
const magic = "parley passkey 1 "

// Statement is what is signed: an answer to a form, or Act.
type Statement struct {
	Form     capabilities.ID `json:"form,omitzero"`
	Digest   events.Hash     `json:"digest,omitzero"`    // of what was shown: of the call, or of the question
	Decision string          `json:"decision,omitempty"` // of an approval: once or always
	Answer   events.Hash     `json:"answer,omitzero"`    // Answered of the values
	With     events.Hash     `json:"with,omitzero"`      // of what is given beside: a mandate, and bounds of references
	Act      string          `json:"act,omitempty"`      // what else is done, in place of an answer
	Nonce    string          `json:"nonce"`
}

// Text returns the statement as it is signed.
func (s Statement) Text() string {
	text, err := json.Marshal(s)
	if err != nil { // it has texts and hashes alone
		panic(err)
	}
	return magic + string(text)
}

// Read reads the text of a statement. It is refused unless it is the very text.
func Read(text string) (s Statement, err error) {
	rest, ok := strings.CutPrefix(text, magic)
	if !ok || len(text) > maxStatement {
		return s, refuse("it is no statement of a passkey")
	}
	dec := json.NewDecoder(strings.NewReader(rest))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&s); err != nil || s.Text() != text {
		return Statement{}, refuse("its statement cannot be read")
	}
	return s, nil
}

// Challenge returns what a browser is to have signed, as WebAuthn writes it.
func Challenge(statement string) string {
	sum := sha256.Sum256([]byte(statement))
	return base64.RawURLEncoding.EncodeToString(sum[:])
}

// Signed is a signature with what is needed to check it.
type Signed struct {
	Key           []byte // the public key, as SubjectPublicKeyInfo
	Origin        string // of the page on which it is good
	Statement     string
	ClientData    []byte
	Authenticator []byte
	Signature     []byte
}

// Of returns what an event of the log has.
func Of(e *events.DecisionSigned) Signed {
	return Signed{Key: e.Key, Origin: e.Origin, Statement: e.Statement, ClientData: e.ClientData, Authenticator: e.Authenticator, Signature: e.Signature}
}

// refuse returns the error for what is no good signature.
func refuse(format string, args ...any) *parley.Error {
	return parley.Refuse(parley.PasskeyRefused, "the passkey's signature is not accepted: "+format, args...).WithHint("try once more, on the page")
}

// clientData is what WebAuthn has the browser say. It has other members too, which are signed and not looked at.
type clientData struct {
	Type        string `json:"type"`
	Challenge   string `json:"challenge"`
	Origin      string `json:"origin"`
	CrossOrigin bool   `json:"crossOrigin"`
	TopOrigin   string `json:"topOrigin"`
}

// Flags of a device's data.
const (
	flagPresent  = 1 << 0
	flagVerified = 1 << 2
)

const leastAuthenticator = sha256.Size + 1 + 4 // the hash of the host's name, the flags, and the count

// Check checks a signature, and returns the count of the device. It refuses with PASSKEY_REFUSED.
func (s Signed) Check() (count uint32, err error) {
	if len(s.ClientData) > maxData || len(s.Authenticator) > maxData || len(s.Signature) > maxSignature || len(s.Statement) > maxStatement {
		return 0, refuse("it is too long")
	}
	host, err := HostOf(s.Origin)
	if err != nil {
		return 0, err
	}
	var c clientData
	if err := json.Unmarshal(s.ClientData, &c); err != nil {
		return 0, refuse("the browser's data cannot be read")
	}
	switch {
	case c.Type != "webauthn.get":
		return 0, refuse("it is of another kind (%s)", parley.Quoted(c.Type, 40))
	case c.Challenge != Challenge(s.Statement):
		return 0, refuse("it signs something else")
	case c.Origin != s.Origin:
		return 0, refuse("it was made on the page %s, and the passkey is for %s", parley.Quoted(c.Origin, 80), s.Origin)
	case c.CrossOrigin || c.TopOrigin != "":
		return 0, refuse("it was made in a frame of another page")
	case len(s.Authenticator) < leastAuthenticator:
		return 0, refuse("the device's data is cut short")
	}
	name := sha256.Sum256([]byte(host))
	flags := s.Authenticator[sha256.Size]
	switch {
	case !bytes.Equal(s.Authenticator[:sha256.Size], name[:]):
		return 0, refuse("it was made for another site")
	case flags&flagPresent == 0:
		return 0, refuse("nobody was there")
	case flags&flagVerified == 0:
		return 0, refuse("the device has not asked for a PIN, a finger or a face")
	}
	if err := s.verify(); err != nil {
		return 0, err
	}
	return binary.BigEndian.Uint32(s.Authenticator[sha256.Size+1:]), nil
}

// verify checks the signature alone.
func (s Signed) verify() error {
	key, err := ParseKey(s.Key)
	if err != nil {
		return err
	}
	sum := sha256.Sum256(s.ClientData)
	signed := append(bytes.Clone(s.Authenticator), sum[:]...)
	digest := sha256.Sum256(signed)
	ok := false
	switch key := key.(type) {
	case *ecdsa.PublicKey:
		ok = ecdsa.VerifyASN1(key, digest[:], s.Signature)
	case ed25519.PublicKey:
		ok = ed25519.Verify(key, signed, s.Signature)
	case *rsa.PublicKey:
		ok = rsa.VerifyPKCS1v15(key, crypto.SHA256, digest[:], s.Signature) == nil
	}
	if !ok {
		return refuse("it does not fit the key")
	}
	return nil
}

// ParseKey reads a public key of a kind that Parley takes: ES256, EdDSA with Ed25519, or RS256 with 2048 bits to 4096.
func ParseKey(der []byte) (crypto.PublicKey, error) {
	if len(der) > maxKey {
		return nil, refuse("the key is too long")
	}
	key, err := x509.ParsePKIXPublicKey(der)
	if err != nil {
		return nil, refuse("the key cannot be read")
	}
	switch k := key.(type) {
	case *ecdsa.PublicKey:
		if k.Curve == elliptic.P256() {
			return k, nil
		}
	case ed25519.PublicKey:
		return k, nil
	case *rsa.PublicKey:
		if bits := k.N.BitLen(); bits >= 2048 && bits <= 4096 {
			return k, nil
		}
	}
	return nil, refuse("the key is of a kind that is not taken")
}

// HostOf returns the host's name in the origin of a page, for which passkeys are registered. It refuses with INVALID_ARGUMENT an origin
// on which browsers have no passkeys: one without TLS that is not this machine, and one that has a number for a name.
func HostOf(origin string) (string, error) {
	u, err := url.Parse(origin)
	switch {
	case err != nil || len(origin) > maxOrigin || u.Host == "" || u.Scheme+"://"+u.Host != origin || strings.ToLower(origin) != origin:
		return "", parley.Refuse(parley.InvalidArgument, "%s is not the origin of a page", parley.Quoted(origin, 80))
	case strings.Contains(u.Host, "[") || isNumber(u.Hostname()):
		return "", parley.Refuse(parley.InvalidArgument, "browsers have no passkeys for a page whose address is a number (%s)", u.Hostname()).
			WithHint("open the page by a name: on the node's own machine http://localhost%s", portOf(u))
	case u.Scheme == "https":
		return u.Hostname(), nil
	case u.Scheme == "http" && (u.Hostname() == "localhost" || strings.HasSuffix(u.Hostname(), ".localhost")):
		return u.Hostname(), nil
	}
	return "", parley.Refuse(parley.InvalidArgument, "browsers have no passkeys for a page that comes without TLS (%s)", origin).
		WithHint("serve the page by https, or open it on the node's own machine at http://localhost%s", portOf(u))
}

func portOf(u *url.URL) string {
	if u.Port() == "" {
		return ""
	}
	return ":" + u.Port()
}

// isNumber reports whether a host's name is an IPv4 address: its last part has digits alone.
func isNumber(host string) bool {
	last := host[strings.LastIndexByte(host, '.')+1:]
	return strings.Trim(last, "0123456789") == ""
}

// Answered returns the digest of the values of an answer. Neither secrets nor references are the same where they are signed, stored and
// proven: a secret stands for that there is one, and of a reference there is its kind and target, and neither grant nor facet.
func Answered(values map[string]capabilities.Value, secrets map[string]bool) (sum events.Hash, err error) {
	return answered(values, secrets, func(r capabilities.Ref) string { return "reference " + string(r.Kind) + " " + r.Target.String() })
}

func answered(values map[string]capabilities.Value, secrets map[string]bool, shown func(capabilities.Ref) string) (sum events.Hash, err error) {
	all := make(map[string]capabilities.Value, len(values))
	for name, v := range values {
		if secrets[name] {
			all[name] = capabilities.String("secret")
			continue
		}
		all[name], err = v.Map(func(v capabilities.Value) (capabilities.Value, error) {
			if r, ok := v.AsRef(); ok {
				return capabilities.String(shown(r)), nil
			}
			if v.IsSealed() {
				return capabilities.String("secret"), nil
			}
			return v, nil
		})
		if err != nil {
			return sum, err
		}
	}
	text, err := capabilities.Record(all).MarshalJSON()
	return sha256.Sum256(text), err
}

// IsAnswered reports whether a digest that was signed is Answered of values as a proof has them. Of an approval it leaves out when a rule
// ends: what a person types as a time from then is stored as a moment. Earlier signatures say of a reference only that there is one.
func IsAnswered(signed events.Hash, text json.RawMessage, ofApproval bool) (bool, error) {
	values, secrets, err := valuesOf(text, ofApproval)
	if err != nil {
		return false, err
	}
	sum, err := Answered(values, secrets)
	if err != nil || sum == signed {
		return err == nil, err
	}
	sum, err = answered(values, secrets, func(capabilities.Ref) string { return "reference" })
	return sum == signed, err
}

func valuesOf(text json.RawMessage, ofApproval bool) (values map[string]capabilities.Value, secrets map[string]bool, err error) {
	var raw map[string]json.RawMessage
	if err := json.Unmarshal(text, &raw); err != nil {
		return nil, nil, err
	}
	if ofApproval {
		delete(raw, "until")
	}
	values, secrets = make(map[string]capabilities.Value, len(raw)), map[string]bool{}
	for name, one := range raw {
		if string(one) == `{"$sealed":true}` {
			secrets[name], values[name] = true, capabilities.Value{}
			continue
		}
		var v capabilities.Value
		if err := json.Unmarshal(one, &v); err != nil {
			return nil, nil, err
		}
		values[name] = v
	}
	return values, secrets, nil
}

// Parse returns what a browser sent for a registered key.
func Parse(sent *parley.PasskeySignature, key []byte, origin string) (s Signed, err error) {
	s = Signed{Key: key, Origin: origin, Statement: sent.Statement}
	for _, part := range []struct {
		text string
		to   *[]byte
		most int
	}{{sent.ClientData, &s.ClientData, maxData}, {sent.Authenticator, &s.Authenticator, maxData}, {sent.Signature, &s.Signature, maxSignature}} {
		if *part.to, err = Decode(part.text, part.most); err != nil {
			return s, err
		}
	}
	return s, nil
}

// Decode decodes base64url without padding, of so many bytes at most. There is one text for some bytes.
func Decode(text string, most int) ([]byte, error) {
	if base64.RawURLEncoding.DecodedLen(len(text)) > most {
		return nil, refuse("a part of it is too long")
	}
	b, err := base64.RawURLEncoding.Strict().DecodeString(text)
	if err != nil || strings.ContainsAny(text, "\r\n") { // a decoder would skip these
		return nil, refuse("a part of it is not in base64url")
	}
	return b, nil
}

// Fingerprint returns what a person compares of a key: as ssh-keygen writes it.
func Fingerprint(key []byte) string {
	sum := sha256.Sum256(key)
	return "SHA256:" + base64.RawStdEncoding.EncodeToString(sum[:])
}
