package gateway

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/ecdh"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"math/big"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"parley/gateway/api"
	"parley/gateway/bridge"
	"parley/gateway/bridge/bridgetest"
	"parley/gateway/bridge/push"
	"parley/internal/eventually"
)

// subscribed is a browser that has subscribed, as its push service and it see it.
type subscribed struct {
	key  *ecdh.PrivateKey
	auth []byte
}

func newSubscribed(t *testing.T) subscribed {
	t.Helper()
	key, err := ecdh.P256().GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return subscribed{key, []byte(rand.Text()[:16])}
}

// config returns the settings of a bridge to the browser.
func (b subscribed) config(name, endpoint string) bridge.Config {
	text := base64.RawURLEncoding.EncodeToString
	return bridge.Config{Name: name, Kind: pushKind, URL: endpoint, Network: "machine", Key: text(b.key.PublicKey().Bytes()), Token: text(b.auth)}
}

// open decrypts a message of one record (RFC 8188, RFC 8291).
func (b subscribed) open(t *testing.T, body []byte) []byte {
	t.Helper()
	salt, size, theirs := body[:16], binary.BigEndian.Uint32(body[16:20]), body[21:21+int(body[20])]
	sealed := body[21+int(body[20]):]
	public, err := ecdh.P256().NewPublicKey(theirs)
	if err != nil || int(size) < len(sealed) {
		t.Fatalf("a record of %d bytes in %d: %v", len(sealed), size, err)
	}
	shared, err := b.key.ECDH(public)
	if err != nil {
		t.Fatal(err)
	}
	derive := func(secret, salt []byte, info string, n int) []byte {
		key, err := hkdf.Key(sha256.New, secret, salt, info, n)
		if err != nil {
			t.Fatal(err)
		}
		return key
	}
	ikm := derive(shared, b.auth, "WebPush: info\x00"+string(b.key.PublicKey().Bytes())+string(theirs), 32)
	block, err := aes.NewCipher(derive(ikm, salt, "Content-Encoding: aes128gcm\x00", 16))
	if err != nil {
		t.Fatal(err)
	}
	gcm, err := cipher.NewGCM(block)
	if err != nil {
		t.Fatal(err)
	}
	plain, err := gcm.Open(nil, derive(ikm, salt, "Content-Encoding: nonce\x00", 12), sealed, nil)
	if err != nil {
		t.Fatal(err)
	}
	text, isLast := bytes.CutSuffix(bytes.TrimRight(plain, "\x00"), []byte{2})
	if !isLast {
		t.Fatalf("the record is not the last: %q", plain)
	}
	return text
}

// TestOpenedMessageIsOfRFC8291 checks the reader of these tests against the example of the RFC.
func TestOpenedMessageIsOfRFC8291(t *testing.T) {
	t.Parallel()
	read := func(text string) []byte {
		b, err := base64.RawURLEncoding.DecodeString(text)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	key, err := ecdh.P256().NewPrivateKey(read("q1dXpw3UpT5VOmu_cf_v6ih07Aems3njxI-JWgLcM94"))
	if err != nil {
		t.Fatal(err)
	}
	body := read("DGv6ra1nlYgDCS1FRnbzlwAAEABBBP4z9KsN6nGRTbVYI_c7VJSPQTBtkgcy27mlmlMoZIIgDll6e3vCYLocInmYWAmS6TlzAC8wEqKK6PBru3jl7A_yl95bQpu6cVPTpK4Mqgkf1CXztLVBSt2Ks3oZwbuwXPXLWyouBWLVWGNWQexSgSxsj_Qulcy4a-fN")
	if got := (subscribed{key, read("BTBZMqHH6r4Tts7J_aSIgg")}).open(t, body); string(got) != "When I grow up, I want to be a watermelon" {
		t.Errorf("it reads %q", got)
	}
}

// checkVAPID checks the signature of a request to a push service (RFC 8292).
func checkVAPID(t *testing.T, r *http.Request, origin string) {
	parts := regexp.MustCompile(`^vapid t=([\w-]+\.[\w-]+)\.([\w-]+), k=([\w-]+)$`).FindStringSubmatch(r.Header.Get("Authorization"))
	if parts == nil {
		t.Errorf("Authorization: %q", r.Header.Get("Authorization"))
		return
	}
	signature, err := base64.RawURLEncoding.DecodeString(parts[2])
	point, failed := base64.RawURLEncoding.DecodeString(parts[3])
	if err != nil || failed != nil || len(signature) != 64 {
		t.Errorf("the signature is %q by %q", parts[2], parts[3])
		return
	}
	key, err := ecdsa.ParseUncompressedPublicKey(elliptic.P256(), point)
	if err != nil {
		t.Error(err)
		return
	}
	sum := sha256.Sum256([]byte(parts[1]))
	if !ecdsa.Verify(key, sum[:], new(big.Int).SetBytes(signature[:32]), new(big.Int).SetBytes(signature[32:])) {
		t.Error("the signature is wrong")
	}
	_, claims, _ := strings.Cut(parts[1], ".")
	var said struct {
		Audience string `json:"aud"`
		Until    int64  `json:"exp"`
		Subject  string `json:"sub"`
	}
	b, err := base64.RawURLEncoding.DecodeString(claims)
	if err == nil {
		err = json.Unmarshal(b, &said)
	}
	if left := time.Until(time.Unix(said.Until, 0)); err != nil || said.Audience != origin || left <= 0 || left > 24*time.Hour || !strings.HasPrefix(said.Subject, "mailto:") {
		t.Errorf("signed is %s: %v", b, err)
	}
}

// pushed is a message to the service worker of the page.
type pushed struct {
	Tag, Title, Body, Page string
	Open                   bool
	Answers                []struct{ Outcome, Label, URL string }
}

// openPushed returns a node that tells a browser, and the browser's push service.
func openPushed(t *testing.T, opened func(pushed)) (*bridged, *place) {
	t.Helper()
	browser := newSubscribed(t)
	var p *place
	p = newPlace(t, func(r *http.Request, body []byte) (form, key string, told bridgetest.Telling) {
		text := browser.open(t, body)
		checkVAPID(t, r, p.URL)
		var m pushed
		if err := json.Unmarshal(text, &m); err != nil {
			t.Error(err)
		}
		h := r.Header
		if h.Get("Content-Encoding") != "aes128gcm" || h.Get("TTL") == "" || h.Get("Topic") != m.Tag || h.Get("Urgency") == "" || len(text) > 3<<10 || len(body) > 4<<10 {
			t.Errorf("%v with %d bytes in %d", h, len(text), len(body))
		}
		if opened != nil {
			opened(m)
		}
		told = bridgetest.Telling{Text: m.Title + "\n" + m.Body, Open: m.Open, Buttons: map[string]string{}}
		for _, a := range m.Answers {
			told.Buttons[a.Label] = a.URL
		}
		return m.Tag, m.Tag + m.Title, told // the browser replaces what has the same tag
	})
	return openBridged(t, browser.config("phone", p.URL+"/send/1")), p
}

func TestPushKeepsPromises(t *testing.T) {
	bridgetest.Run(t, func(t *testing.T) (bridgetest.Node, bridgetest.Place) { return openPushed(t, nil) })
}

// TestPushKeyIsMadeOnce also checks that others cannot read it.
func TestPushKeyIsMadeOnce(t *testing.T) {
	n, p := openPushed(t, nil)
	form := n.Approve(`{"command":"ls"}`)
	eventually.Holds(t, "the browser is told", func() bool { return len(p.Told(form)) == 1 })
	path := filepath.Join(n.folder, push.KeyFile)
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Fatalf("the key has %v, %v", info, err)
	}
	before, err := n.server.devices.Key()
	if err != nil {
		t.Fatal(err)
	}
	n.Restart()
	if after, err := n.server.devices.Key(); err != nil || after != before {
		t.Errorf("after a restart the key is %s, %v; it was %s", after, err, before)
	}
	if err := os.Chmod(path, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := n.server.devices.Key(); err == nil {
		t.Error("a key that others can read is used")
	}
}

func TestEndedSubscriptionIsToldNoMore(t *testing.T) {
	for _, status := range []int{http.StatusNotFound, http.StatusGone} {
		n, p := openPushed(t, nil)
		p.mu.Lock()
		p.status, p.refuse = status, true
		p.mu.Unlock()
		first := n.Approve(`{"command":"ls"}`)
		gone := func() bool {
			all, err := n.server.devices.List()
			return err == nil && len(all) == 2 && all[1].Name == "phone" && all[1].Gone
		}
		eventually.Holds(t, "the subscription has ended", gone)
		p.Refuse(false)
		n.Approve(`{"command":"rm"}`)
		n.Restart() // waits for the workers
		if len(p.Told(first)) > 0 || p.Refused() != 1 || !gone() {
			t.Errorf("after %d the browser was told %v, refused %d", status, p.Told(first), p.Refused())
		}
	}
}

// TestPushShowsNoMoreThanAPhoneDoes: what a phone does not show in full has no button that allows it.
func TestPushShowsNoMoreThanAPhoneDoes(t *testing.T) {
	t.Parallel()
	n, p := openPushed(t, nil)
	for _, c := range []struct {
		command string
		allows  bool
	}{
		{"echo " + strings.Repeat("a", 100), true}, {"echo " + strings.Repeat("a", 300), false},
		{"echo " + strings.Repeat("😀", 100), true}, {"echo " + strings.Repeat("😀", 300), false},
	} {
		form := n.Approve(`{"command":"` + c.command + `"}`)
		eventually.Holds(t, "the browser is told", func() bool { return len(p.Told(form)) == 1 })
		told := p.Told(form)[0]
		if _, allows := told.Buttons["Allow once"]; allows != c.allows || told.Buttons["Deny"] == "" {
			t.Errorf("%.40q is told as %q with %v", c.command, told.Text, told.Buttons)
		}
	}
}

// TestLatePressOfANotificationLearns: the script that shows notifications gets JSON, with who was first.
func TestLatePressOfANotificationLearns(t *testing.T) {
	t.Parallel()
	n, p := openPushed(t, nil)
	form := n.Approve(`{"command":"ls"}`)
	eventually.Holds(t, "the browser is told", func() bool { return len(p.Told(form)) == 1 })
	n.Decide(form, "once")
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, p.Told(form)[0].Buttons["Deny"], nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Accept", "application/json")
	resp, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close() //nolint:errcheck // it is read
	var got api.Failure
	if err := json.NewDecoder(resp.Body).Decode(&got); err != nil || resp.StatusCode != http.StatusConflict || !strings.Contains(got.Error.Message, "was answered by") {
		t.Errorf("%d %+v, %v", resp.StatusCode, got, err)
	}
}
