package transport

import (
	"crypto/ed25519"
	"crypto/tls"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nkeys"

	"parley"
	"parley/capabilities"
	"parley/internal/eventually"
)

func TestUnadmittedNodeCannotConnect(t *testing.T) {
	var asked atomic.Pointer[string]
	welcome := newIdentity(t)
	admit := func(node capabilities.NodeID, token string) bool {
		asked.Store(&token)
		return node == welcome.Node() || token == "an invitation"
	}
	a := openListening(t, Options{Admit: admit})
	b := openTransport(t, Options{})
	if err := b.Dial(testContext(t), a.me, a.Hints(), "a guess"); parley.CodeOf(err) != parley.NotPermitted {
		t.Errorf("with a wrong token: %v", err)
	}
	if got := asked.Load(); got == nil || *got != "a guess" {
		t.Errorf("Admit was called with %v", got)
	}
	must(t, b.Dial(testContext(t), a.me, a.Hints(), "an invitation"))
	c := openTransport(t, Options{Identity: welcome})
	must(t, c.Dial(testContext(t), a.me, a.Hints(), ""))
	mustCall(t, b, a, "b is in")
	mustCall(t, a, c, "c is in")
	if _, err := b.Call(testContext(t), c.me, 1, nil); parley.CodeOf(err) != parley.NodeUnreachable {
		t.Errorf("one guest called another: %v", err)
	}
}

func TestNodeIsNoLongerAdmitted(t *testing.T) {
	var shut atomic.Bool
	a := openListening(t, Options{Admit: func(capabilities.NodeID, string) bool { return !shut.Load() }})
	b := openTransport(t, Options{})
	must(t, b.Dial(testContext(t), a.me, a.Hints(), ""))
	link := b.dialed[a.me]
	shut.Store(true)
	a.Disconnect(b.me)
	select {
	case <-link.gone:
	case <-testContext(t).Done():
		t.Fatal("the client still tries to connect")
	}
	if _, err := b.Call(testContext(t), a.me, 1, nil); !errors.Is(err, errNoLink) {
		t.Errorf("the peer is still connected: %v", err)
	}
	eventually.Holds(t, "the listener has let the last attempt go", func() bool { return !a.Connected(b.me) })
	shut.Store(false)
	must(t, b.Dial(testContext(t), a.me, a.Hints(), ""))
	mustCall(t, b, a, "admitted again")
}

func TestDialChecksIdentity(t *testing.T) {
	impostor := openListening(t, Options{})
	b := openTransport(t, Options{})
	err := b.Dial(testContext(t), newIdentity(t).Node(), impostor.Hints(), "secret")
	if parley.CodeOf(err) != parley.NodeUnreachable || !errors.Is(err, errOtherNode) {
		t.Errorf("dialing another: %v", err)
	}
	a := openListening(t, Options{})
	must(t, b.Dial(testContext(t), a.me, append(impostor.Hints(), a.Hints()...), "")) // it tries the next hint
	mustCall(t, b, a, "found")
}

// raw connects to a listener with the plain NATS client.
func raw(t *testing.T, to *Transport, options ...nats.Option) (*nats.Conn, error) {
	t.Helper()
	conn, err := nats.Connect(to.Hints()[0], append([]nats.Option{
		nats.Secure(dialing(to.me)), nats.TLSHandshakeFirst(), nats.NoReconnect(),
	}, options...)...)
	if conn != nil {
		t.Cleanup(conn.Close)
	}
	return conn, err
}

// answering returns the option that signs a listener's challenge as a node does.
func answering(i *Identity, listener capabilities.NodeID) nats.Option {
	return nats.Nkey(i.Node().String(), func(nonce []byte) ([]byte, error) { return i.prove(listener, nonce), nil })
}

func TestOnlyProvedNodesConnect(t *testing.T) {
	a, me, other := openListening(t, Options{}), newIdentity(t), newIdentity(t)
	user, err := nkeys.CreateUser()
	must(t, err)
	userText, err := user.PublicKey()
	must(t, err)
	as := func(node string, sign nats.SignatureHandler) []nats.Option {
		return []nats.Option{nats.Nkey(node, sign)}
	}
	for name, options := range map[string][]nats.Option{
		"nobody":               nil,
		"a user":               {nats.UserInfo("a", "b")},
		"a user without a key": {nats.UserInfo(me.Node().String(), "")},
		"a token":              {nats.Token("token")},
		"a user's key":         as(userText, user.Sign),
		"no signature":         as(me.Node().String(), func([]byte) ([]byte, error) { return nil, nil }),
		"the bare challenge signed": as(me.Node().String(), func(n []byte) ([]byte, error) {
			return ed25519.Sign(me.key, n), nil
		}),
		"another challenge signed": as(me.Node().String(), func([]byte) ([]byte, error) {
			return me.prove(a.me, []byte("another")), nil
		}),
		"in another's name": as(other.Node().String(), func(n []byte) ([]byte, error) { return me.prove(a.me, n), nil }),
		"as the listener":   as(a.me.String(), func(n []byte) ([]byte, error) { return me.prove(a.me, n), nil }),
		"for another listener": as(me.Node().String(), func(n []byte) ([]byte, error) {
			return me.prove(other.Node(), n), nil
		}),
		"nobody's key": as(capabilities.NodeID{}.String(), func([]byte) ([]byte, error) {
			return make([]byte, ed25519.SignatureSize), nil
		}),
		"with a JWT": {nats.UserJWT(
			func() (string, error) { return "e30.e30.e30", nil },
			func(n []byte) ([]byte, error) { return me.prove(a.me, n), nil })},
		"with a password too": {answering(me, a.me), nats.UserInfo("a", "b")},
		"a long token":        {answering(me, a.me), nats.Token(strings.Repeat("x", maxToken+1))},
	} {
		if _, err := raw(t, a, options...); !errors.Is(err, nats.ErrAuthorization) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := raw(t, a, answering(me, a.me)); err != nil {
		t.Errorf("a node: %v", err)
	}
	old := dialing(a.me)
	old.MinVersion, old.MaxVersion = tls.VersionTLS12, tls.VersionTLS12
	if _, err := raw(t, a, answering(me, a.me), nats.Secure(old)); err == nil {
		t.Error("TLS 1.2 is spoken")
	}
	if conn, err := nats.Connect(a.Hints()[0], nats.NoReconnect(), nats.Timeout(200*time.Millisecond), answering(me, a.me)); err == nil {
		conn.Close()
		t.Error("the listener accepts connections without TLS")
	}
}

func TestGuestIsLimitedToItsSubjects(t *testing.T) {
	a, guest, other := openListening(t, Options{}), newIdentity(t), newIdentity(t)
	violations := make(chan error, 16)
	conn, err := raw(t, a, answering(guest, a.me), nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) {
		violations <- err
	}))
	must(t, err)
	refused := func(name string, do func() error) {
		t.Helper()
		must(t, do())
		must(t, conn.FlushWithContext(testContext(t)))
		select {
		case err := <-violations:
			if !errors.Is(err, nats.ErrPermissionViolation) {
				t.Errorf("%s: %v", name, err)
			}
		case <-testContext(t).Done():
			t.Errorf("%s: nothing was said against it", name)
		}
	}
	for _, subject := range []string{
		mailSubject(other.Node()), mailSubject(a.me), replySubjects(a.me), replySubjects(other.Node()), "parley.node.*.mail",
		everySubject, ">", "$SYS.>", "_INBOX.>",
	} {
		refused("subscribe to "+subject, func() error { _, err := conn.SubscribeSync(subject); return err })
	}
	for _, subject := range []string{mailSubject(other.Node()), mailSubject(guest.Node()), replySubject(other.Node(), someID), "hello", "$SYS.REQ.SERVER.PING"} {
		refused("publish to "+subject, func() error { return conn.Publish(subject, nil) })
	}
	_, err = conn.SubscribeSync(mailSubject(guest.Node()))
	must(t, err)
	must(t, conn.Publish(mailSubject(a.me), nil))
	must(t, conn.FlushWithContext(testContext(t)))
	select {
	case err := <-violations:
		t.Errorf("its own subjects: %v", err)
	default:
	}
}

func TestConnectionsPerNodeAreLimited(t *testing.T) {
	a, guest := openListening(t, Options{}), newIdentity(t)
	ended := make(chan struct{}, 16)
	for range connectionsOfNode + 2 {
		_, err := raw(t, a, answering(guest, a.me), nats.ClosedHandler(func(*nats.Conn) { ended <- struct{}{} }))
		must(t, err)
	}
	for range 2 {
		select {
		case <-ended:
		case <-testContext(t).Done():
			t.Fatal("the oldest connections stay")
		}
	}
	if n := len(a.listener.of(guest.Node())); n != connectionsOfNode {
		t.Errorf("%d connections of one node", n)
	}
}
