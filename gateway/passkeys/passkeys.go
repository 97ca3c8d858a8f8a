package passkeys

import (
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"maps"
	"math/big"
	"slices"
	"sync"
	"time"

	"github.com/go-webauthn/webauthn/protocol"
	"github.com/go-webauthn/webauthn/protocol/webauthncose"
	"github.com/go-webauthn/webauthn/webauthn"

	"parley"
	"parley/capabilities"
	"parley/events"
	"parley/mailbox/passkey"
)

const (
	challengeTime = 5 * time.Minute
	maxChallenges = 64 // of one agent; the oldest goes
	maxReturned   = 64 << 10
)

// Challenges are what people were asked to sign or to register, until they have. The zero value is ready for use. Each agent has room of its
// own, so that none takes that of another.
type Challenges struct {
	mu   sync.Mutex
	open map[capabilities.ID][]challenge // oldest first
	next time.Time                       // when those of agents that ask no more are looked for
	now  func() time.Time                // nil for the clock
}

type challenge struct {
	text    string
	until   time.Time
	session *webauthn.SessionData // of a registration
	made    events.PasskeyAdded   // as far as it is known
}

// add notes a challenge of an agent.
func (c *Challenges) add(of capabilities.ID, one challenge) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.time()
	ended := func(o challenge) bool { return !now.Before(o.until) }
	if c.open == nil || !now.Before(c.next) { // once in the time that one lasts
		c.next = now.Add(challengeTime)
		maps.DeleteFunc(c.open, func(_ capabilities.ID, all []challenge) bool { return ended(all[len(all)-1]) })
	}
	if c.open == nil {
		c.open = map[capabilities.ID][]challenge{}
	}
	all := slices.DeleteFunc(c.open[of], ended)
	if len(all) >= maxChallenges {
		all = slices.Delete(all, 0, 1)
	}
	one.until = now.Add(challengeTime)
	c.open[of] = append(all, one)
}

// take returns a challenge of an agent, and ends it.
func (c *Challenges) take(text string, of capabilities.ID) (one challenge, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	all := c.open[of]
	i := slices.IndexFunc(all, func(o challenge) bool { return o.text == text })
	if i < 0 {
		return challenge{}, false
	}
	one = all[i]
	if all = slices.Delete(all, i, i+1); len(all) == 0 {
		delete(c.open, of)
	} else {
		c.open[of] = all
	}
	return one, c.time().Before(one.until)
}

func (c *Challenges) time() time.Time {
	if c.now != nil {
		return c.now()
	}
	return time.Now()
}

// Ask returns the text of a statement that an agent is to sign, with a nonce. It is good once.
func (c *Challenges) Ask(of capabilities.ID, s passkey.Statement) string {
	s.Nonce = rand.Text()
	c.add(of, challenge{text: s.Nonce})
	return s.Text()
}

// Answer ends the challenge that a statement was made for. It refuses with PASSKEY_REFUSED one that this agent was not asked to sign, or
// has signed already.
func (c *Challenges) Answer(of capabilities.ID, statement string) error {
	s, err := passkey.Read(statement)
	if err != nil {
		return err
	}
	if one, ok := c.take(s.Nonce, of); !ok || one.session != nil {
		return parley.Refuse(parley.PasskeyRefused, "this was signed before, or too long ago").WithHint("decide once more, on the page")
	}
	return nil
}

// user is an agent as the library knows who registers.
type user struct {
	id   []byte
	name string
}

// userOf returns an agent as its device knows it: by 64 bytes at most, fewer than an ID has.
func userOf(id capabilities.ID, name string) user {
	sum := sha256.Sum256([]byte(id.String()))
	return user{sum[:], name}
}

func (u user) WebAuthnID() []byte                         { return u.id }
func (u user) WebAuthnName() string                       { return u.name }
func (u user) WebAuthnDisplayName() string                { return u.name }
func (u user) WebAuthnCredentials() []webauthn.Credential { return nil }

// site returns the library for the pages of an origin.
func site(origin string) (*webauthn.WebAuthn, error) {
	host, err := passkey.HostOf(origin)
	if err != nil {
		return nil, err
	}
	return webauthn.New(&webauthn.Config{RPID: host, RPDisplayName: "Parley", RPOrigins: []string{origin}, AttestationPreference: protocol.PreferNoAttestation})
}

// Begin returns the options with which a browser makes a passkey of a name for an agent, on pages of an origin. Those with the IDs known
// are there already.
func (c *Challenges) Begin(of capabilities.ID, name, origin string, known []string) (json.RawMessage, error) {
	w, err := site(origin)
	if err != nil {
		return nil, err
	}
	var descriptors []protocol.CredentialDescriptor
	for _, id := range known {
		b, err := base64.RawURLEncoding.DecodeString(id)
		if err != nil {
			return nil, err
		}
		descriptors = append(descriptors, protocol.CredentialDescriptor{Type: protocol.PublicKeyCredentialType, CredentialID: b})
	}
	creation, session, err := w.BeginRegistration(userOf(of, name),
		webauthn.WithExclusions(descriptors),
		webauthn.WithAuthenticatorSelection(protocol.AuthenticatorSelection{UserVerification: protocol.VerificationRequired, ResidentKey: protocol.ResidentKeyRequirementDiscouraged}),
		webauthn.WithCredentialParameters([]protocol.CredentialParameter{
			{Type: protocol.PublicKeyCredentialType, Algorithm: webauthncose.AlgES256},
			{Type: protocol.PublicKeyCredentialType, Algorithm: webauthncose.AlgEdDSA},
			{Type: protocol.PublicKeyCredentialType, Algorithm: webauthncose.AlgRS256},
		}))
	if err != nil {
		return nil, parley.Refuse(parley.Internal, "the options for a passkey cannot be made: %v", err)
	}
	options, err := json.Marshal(creation.Response)
	if err != nil {
		return nil, err
	}
	c.add(of, challenge{text: session.Challenge, session: session, made: events.PasskeyAdded{Name: name, Origin: origin}})
	return options, nil
}

// Finish returns the passkey that a browser has made, as its PublicKeyCredential in JSON. It refuses with PASSKEY_REFUSED what was not
// asked of this agent, and what is not by the rules of WebAuthn.
func (c *Challenges) Finish(of capabilities.ID, returned json.RawMessage) (events.PasskeyAdded, error) {
	if len(returned) > maxReturned {
		return events.PasskeyAdded{}, refuse("it is too long")
	}
	parsed, err := protocol.ParseCredentialCreationResponseBytes(returned)
	if err != nil {
		return events.PasskeyAdded{}, refuse("the browser's answer cannot be read")
	}
	asked, ok := c.take(parsed.Response.CollectedClientData.Challenge, of)
	if !ok || asked.session == nil {
		return events.PasskeyAdded{}, refuse("it was not asked for, or too long ago")
	}
	w, err := site(asked.made.Origin)
	if err != nil {
		return events.PasskeyAdded{}, err
	}
	made, err := w.CreateCredential(userOf(of, asked.made.Name), *asked.session, parsed)
	if err != nil {
		return events.PasskeyAdded{}, refuse("%s", parley.Shown(err.Error(), 200))
	}
	if parsed.Response.CollectedClientData.Origin != asked.made.Origin { // the library compares hosts without their case
		return events.PasskeyAdded{}, refuse("it was made on another page")
	}
	e := asked.made
	if e.Key, err = infoOf(made.PublicKey); err != nil {
		return e, err
	}
	e.Credential, e.Count = made.ID, made.Authenticator.SignCount
	return e, nil
}

func refuse(format string, args ...any) error {
	return parley.Refuse(parley.PasskeyRefused, "the passkey is not registered: "+format, args...).WithHint("try once more, on the page")
}

// infoOf returns a public key of COSE as SubjectPublicKeyInfo.
func infoOf(cose []byte) ([]byte, error) {
	key, err := webauthncose.ParsePublicKey(cose)
	if err != nil {
		return nil, refuse("its key cannot be read")
	}
	var public any
	switch k := key.(type) {
	case webauthncose.EC2PublicKeyData:
		if k.Algorithm != int64(webauthncose.AlgES256) || len(k.XCoord) != 32 || len(k.YCoord) != 32 {
			return nil, refuse("its key is of a kind that is not taken")
		}
		if public, err = ecdsa.ParseUncompressedPublicKey(elliptic.P256(), append(append([]byte{4}, k.XCoord...), k.YCoord...)); err != nil {
			return nil, refuse("its key is no point of the curve")
		}
	case webauthncose.OKPPublicKeyData:
		if k.Algorithm != int64(webauthncose.AlgEdDSA) || len(k.XCoord) != ed25519.PublicKeySize {
			return nil, refuse("its key is of a kind that is not taken")
		}
		public = ed25519.PublicKey(k.XCoord)
	case webauthncose.RSAPublicKeyData:
		e := new(big.Int).SetBytes(k.Exponent)
		if k.Algorithm != int64(webauthncose.AlgRS256) || !e.IsInt64() || e.Int64() > 1<<31-1 || len(k.Modulus) > 512 {
			return nil, refuse("its key is of a kind that is not taken")
		}
		public = &rsa.PublicKey{N: new(big.Int).SetBytes(k.Modulus), E: int(e.Int64())}
	default:
		return nil, refuse("its key is of a kind that is not taken")
	}
	der, err := x509.MarshalPKIXPublicKey(public)
	if err != nil {
		return nil, refuse("its key cannot be kept")
	}
	if _, err := passkey.ParseKey(der); err != nil {
		return nil, err
	}
	return der, nil
}
