package gateway

import (
	"bytes"
	"crypto/ed25519"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"parley"
	"parley/actors"
	"parley/actors/view"
	"parley/capabilities"
	"parley/events"
	"parley/gateway/bridge"
	"parley/gateway/bridge/bridgetest"
	"parley/gateway/bridge/webhook"
	"parley/internal/eventually"
	"parley/mailbox"
)

// place is a server that takes tellings in a receiver's own protocol.
type place struct {
	*httptest.Server

	mu      sync.Mutex
	told    map[string][]bridgetest.Telling
	seen    map[string]bool
	refuse  bool
	status  int
	refused int
}

// newPlace returns a place. Read reads the form, a key and the telling of a request.
func newPlace(t *testing.T, read func(*http.Request, []byte) (form, key string, told bridgetest.Telling)) *place {
	t.Helper()
	p := &place{told: map[string][]bridgetest.Telling{}, seen: map[string]bool{}, status: http.StatusInternalServerError}
	p.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		form, key, told := read(r, body)
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.refuse {
			p.refused++
			w.WriteHeader(p.status)
			return
		}
		if !p.seen[key] {
			p.seen[key] = true
			p.told[form] = append(p.told[form], told)
		}
	}))
	t.Cleanup(p.Close)
	return p
}

func (p *place) Told(form string) []bridgetest.Telling {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.told[strings.Split(form, "@")[0]]
}

func (p *place) Refuse(on bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.refuse = on
}

func (p *place) Refused() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.refused
}

// bridged is a node with bridges.
type bridged struct {
	*testServer
	fae string
}

// openBridged returns a node with a bridge, and another whose receiver never answers.
func openBridged(t *testing.T, c bridge.Config) *bridged {
	t.Helper()
	dead, err := net.Listen("tcp", "127.0.0.1:0") // it connects, and that is all
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = dead.Close() })
	h := openTestServer(t)
	b := &bridged{testServer: h}
	fae, err := h.node.Host().Make(t.Context(), actors.NewAgent{Kind: events.Guest, Name: "fae"})
	if err != nil {
		t.Fatal(err)
	}
	b.fae = fae.ID().String()
	unanswered := c
	at, err := url.Parse(c.URL)
	if err != nil {
		t.Fatal(err)
	}
	at.Host = dead.Addr().String()
	unanswered.Name, unanswered.URL = "dead", at.String()
	if err := bridge.WriteConfigs(filepath.Join(h.folder, "bridges.json"), []bridge.Config{unanswered, c}); err != nil {
		t.Fatal(err)
	}
	b.Restart()
	return b
}

func (b *bridged) agent() *actors.Agent {
	b.t.Helper()
	a, err := b.node.ActAs(b.t.Context(), "fae")
	if err != nil {
		b.t.Fatal(err)
	}
	return a
}

func (b *bridged) Approve(input string) string { return b.ApproveIn("", "Bash", input) }

func (b *bridged) ApproveIn(folder, tool, input string) string {
	b.t.Helper()
	p, err := b.agent().Approve(b.t.Context(), mailbox.RequestApproval{Permission: parley.Permission{Tool: tool, Input: input, Folder: folder}})
	if err != nil {
		b.t.Fatal(err)
	}
	return p.Form.String()
}

func (b *bridged) ApproveByTwo(input string) string {
	b.t.Helper()
	p, err := b.agent().Approve(b.t.Context(), mailbox.RequestApproval{Permission: parley.Permission{Tool: "Bash", Input: input}, Need: 2})
	if err != nil {
		b.t.Fatal(err)
	}
	return p.Form.String()
}

func (b *bridged) ref(form string) capabilities.FormRef {
	b.t.Helper()
	ref, err := capabilities.ParseFormRef(form)
	if err != nil {
		b.t.Fatal(err)
	}
	return ref
}

func (b *bridged) Decide(form, decision string) {
	b.t.Helper()
	values := map[string]capabilities.Value{"decision": capabilities.String(decision)}
	if _, err := b.node.Host().Answer(b.t.Context(), b.ref(form), parley.Answer{Values: values}); err != nil {
		b.t.Fatal(err)
	}
}

func (b *bridged) Cancel(form string) {
	b.t.Helper()
	if _, err := b.agent().Cancel(b.t.Context(), b.ref(form), ""); err != nil {
		b.t.Fatal(err)
	}
}

func (b *bridged) Restart() {
	b.t.Helper()
	b.close()
	b.open(func(s *Server) { s.devices.settings = filepath.Join(b.folder, "bridges.json") })
}

// openWebhook returns a node with a webhook, and its receiver.
func openWebhook(t *testing.T) (*bridged, *place) {
	t.Helper()
	c, p := newWebhook(t, "hook")
	return openBridged(t, c), p
}

// newWebhook returns the settings of a webhook, and its receiver, which checks the signatures.
func newWebhook(t *testing.T, name string) (bridge.Config, *place) {
	t.Helper()
	text, err := webhook.NewKey()
	if err != nil {
		t.Fatal(err)
	}
	key, err := webhook.ParseKey(text)
	if err != nil {
		t.Fatal(err)
	}
	public, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(webhook.PublicKey(key), "whpk_"))
	if err != nil {
		t.Fatal(err)
	}
	sharedText := webhook.NewShared()
	secret, err := webhook.ParseShared(sharedText)
	if err != nil {
		t.Fatal(err)
	}
	p := newPlace(t, func(r *http.Request, body []byte) (form, id string, told bridgetest.Telling) {
		id = r.Header.Get("Webhook-Id")
		shared, signed, _ := strings.Cut(r.Header.Get("Webhook-Signature"), " ")
		mac := hmac.New(sha256.New, secret)
		mac.Write([]byte(id + "." + r.Header.Get("Webhook-Timestamp") + "." + string(body)))
		if want := "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil)); shared != want {
			t.Errorf("the signature by the secret is %q, want %q", shared, want)
		}
		checkByLibrary(t, sharedText, r.Header, body)
		signature, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(signed, "v1a,"))
		if err != nil || !ed25519.Verify(public, []byte(id+"."+r.Header.Get("Webhook-Timestamp")+"."+string(body)), signature) {
			t.Errorf("the signature is wrong: %v", err)
		}
		var sent struct {
			Type string
			Data struct {
				Form    string
				Buttons []struct{ Label, URL string }
			}
		}
		if err := json.Unmarshal(body, &sent); err != nil {
			t.Error(err)
		}
		told = bridgetest.Telling{Text: string(body), Open: sent.Type == "form.opened", Buttons: map[string]string{}}
		for _, b := range sent.Data.Buttons {
			told.Buttons[b.Label] = b.URL
		}
		return strings.Split(sent.Data.Form, "@")[0], id, told
	})
	return bridge.Config{Name: name, Kind: "webhook", URL: p.URL + "/in", Network: "machine", Key: text, Token: sharedText}, p
}

// checkByLibrary has the library of Standard Webhooks for JavaScript check a request and its secret, where it is installed:
// PARLEY_WEBHOOKS names its folder.
func checkByLibrary(t *testing.T, secret string, h http.Header, body []byte) {
	t.Helper()
	library := os.Getenv("PARLEY_WEBHOOKS")
	if library == "" {
		return
	}
	check := exec.Command("node", "-e", `
const { Webhook } = require(process.argv[1]);
const [, , secret, id, stamp, signature] = process.argv, body = require("fs").readFileSync(0, "utf8");
const headers = { "webhook-id": id, "webhook-timestamp": stamp, "webhook-signature": signature };
new Webhook(secret).verify(body, headers);
let isTaken = true;
try { new Webhook(secret).verify(body + " ", headers); } catch { isTaken = false; }
if (isTaken) throw new Error("another body is taken too");
`, library, secret, h.Get("Webhook-Id"), h.Get("Webhook-Timestamp"), h.Get("Webhook-Signature"))
	check.Stdin = bytes.NewReader(body)
	if said, err := check.CombinedOutput(); err != nil {
		t.Errorf("the library does not take the request: %v\n%s", err, said)
	}
}

func TestWebhookKeepsPromises(t *testing.T) {
	bridgetest.Run(t, func(t *testing.T) (bridgetest.Node, bridgetest.Place) { return openWebhook(t) })
}

func TestNtfyKeepsPromises(t *testing.T) {
	bridgetest.Run(t, func(t *testing.T) (bridgetest.Node, bridgetest.Place) {
		p := newPlace(t, func(r *http.Request, body []byte) (form, key string, told bridgetest.Telling) {
			var sent struct {
				Topic    string
				Sequence string `json:"sequence_id"`
				Title    string
				Message  string
				Actions  []struct{ Action, Label, URL, Method string }
			}
			if err := json.Unmarshal(body, &sent); err != nil {
				t.Error(err)
			}
			if r.Method != http.MethodPost || r.URL.Path != "/" || sent.Topic != "topic" || sent.Title == "" || r.Header.Get("Authorization") != "Bearer tk_1" {
				t.Errorf("published %s %s %s with %q", r.Method, r.URL, body, r.Header.Get("Authorization"))
			}
			told = bridgetest.Telling{Text: sent.Title + "\n" + sent.Message, Open: strings.HasPrefix(sent.Title, "Question"), Buttons: map[string]string{}}
			for _, a := range sent.Actions {
				if a.Action != "http" || a.Method != http.MethodPost {
					t.Errorf("a button is %+v", a)
				}
				told.Buttons[a.Label] = a.URL
			}
			return sent.Sequence, sent.Sequence + sent.Title, told // the server replaces what has the same sequence
		})
		return openBridged(t, bridge.Config{Name: "phone", Kind: "ntfy", URL: p.URL + "/topic", Network: "machine", Token: "tk_1"}), p
	})
}

func TestGoneReceiverEndsBridge(t *testing.T) {
	n, p := openWebhook(t)
	p.mu.Lock()
	p.status, p.refuse = http.StatusGone, true
	p.mu.Unlock()
	first := n.Approve(`{"command":"ls"}`)
	file := BridgeFile(filepath.Join(n.folder, "bridges.json"), "hook")
	eventually.Holds(t, "the bridge has ended", func() bool { gone, err := bridge.IsGone(file); return err == nil && gone })
	n.Restart()
	p.Refuse(false)
	n.Approve(`{"command":"rm"}`)
	n.Restart() // waits for the workers
	if len(p.Told(first)) > 0 || p.Refused() != 1 {
		t.Errorf("a receiver that is gone was told: %v, refused %d", p.Told(first), p.Refused())
	}
}

// TestDroppedBridgeEndsItsButtons also checks that a running node takes up a change of its settings.
func TestDroppedBridgeEndsItsButtons(t *testing.T) {
	n, p := openWebhook(t)
	form := n.Approve(`{"command":"ls"}`)
	eventually.Holds(t, "the receiver is told", func() bool { return len(p.Told(form)) == 1 })
	settings := filepath.Join(n.folder, "bridges.json")
	if err := bridge.WriteConfigs(settings, nil); err != nil {
		t.Fatal(err)
	}
	eventually.Holds(t, "what the bridges have told is removed", func() bool {
		left, err := filepath.Glob(BridgeFile(settings, "*"))
		return err == nil && len(left) == 0
	})
	resp, err := http.Post(p.Told(form)[0].Buttons["Allow once"], "", nil)
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	http.DefaultClient.CloseIdleConnections()
	if resp.StatusCode != http.StatusForbidden {
		t.Errorf("a button of a bridge that was dropped: %d", resp.StatusCode)
	}
	grants, err := n.node.Host().Names().Grants(t.Context(), view.GrantFilter{})
	if err != nil {
		t.Fatal(err)
	}
	for _, g := range grants {
		if len(g.Outcomes) > 0 && g.Revoked == 0 {
			t.Errorf("the right %+v is left", g)
		}
	}
}

// TestAnswerPageRunsNothing checks the page behind a button, which is for everybody who has its address.
func TestAnswerPageRunsNothing(t *testing.T) {
	n, p := openWebhook(t)
	form := n.Approve(`{"command":"ls"}`)
	eventually.Holds(t, "the receiver is told", func() bool { return len(p.Told(form)) == 1 })
	resp, err := http.Get(p.Told(form)[0].Buttons["Deny"])
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close() //nolint:errcheck // it is read
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	http.DefaultClient.CloseIdleConnections()
	for _, h := range []struct{ name, want string }{{"Content-Security-Policy", "default-src 'none'"}, {"Referrer-Policy", "no-referrer"}, {"Cache-Control", "no-store"}} {
		if got := resp.Header.Get(h.name); !strings.Contains(got, h.want) {
			t.Errorf("%s: %q", h.name, got)
		}
	}
	if resp.StatusCode != http.StatusOK || !strings.Contains(string(b), `>Deny</button>`) || strings.Contains(string(b), "pla_") {
		t.Errorf("%d %s", resp.StatusCode, b)
	}
}

// TestVoteIsNoEnd checks that people are told of a vote as one: the form waits for others, and again for the host if that takes the vote
// back. Nothing is told twice after a restart.
func TestVoteIsNoEnd(t *testing.T) {
	n, p := openWebhook(t)
	asked, err := n.agent().Ask(t.Context(), parley.Form{To: "@host", Description: "Deploy?", Fields: []events.Field{{Name: "ok"}}, Need: 2})
	if err != nil {
		t.Fatal(err)
	}
	form := asked.Form.String()
	eventually.Holds(t, "the receiver is told", func() bool { return len(p.Told(form)) == 1 })
	if len(p.Told(form)[0].Buttons) > 0 {
		t.Errorf("a form with fields has buttons: %+v", p.Told(form))
	}
	values := map[string]capabilities.Value{"ok": capabilities.String("yes")}
	if _, err := n.node.Host().Answer(t.Context(), n.ref(form), parley.Answer{Values: values}); err != nil {
		t.Fatal(err)
	}
	told := func(times int) bridgetest.Telling {
		t.Helper()
		eventually.Holds(t, "the receiver is told", func() bool { return len(p.Told(form)) >= times })
		for range 2 { // the second is told in a later round than that which sees what was done
			later := n.Approve(`{"command":"later"}`)
			eventually.Holds(t, "the receiver is told of a later form", func() bool { return len(p.Told(later)) == 1 })
		}
		all := p.Told(form)
		if len(all) != times || strings.Contains(all[times-1].Text, "yes") {
			t.Fatalf("told %d times, want %d: %+v", len(all), times, all)
		}
		return all[times-1]
	}
	waits := []string{`"type":"form.waiting"`, `"status":"voted"`, `"votes":"1 of 2"`}
	if now := told(2); !containsAll(now.Text, waits) {
		t.Errorf("after a vote: %s", now.Text)
	}
	n.Restart()
	if _, err := n.node.Host().Withdraw(t.Context(), n.ref(form)); err != nil {
		t.Fatal(err)
	}
	if now := told(3); !now.Open || !containsAll(now.Text, []string{`"status":"open"`, `"votes":"0 of 2"`}) {
		t.Errorf("after its withdrawal: %s", now.Text)
	}
	n.Restart()
	if _, err := n.node.Host().Answer(t.Context(), n.ref(form), parley.Answer{Values: values}); err != nil {
		t.Fatal(err)
	}
	if now := told(4); !containsAll(now.Text, waits) {
		t.Errorf("after another vote: %s", now.Text)
	}
	n.Cancel(form)
	if last := told(5); !containsAll(last.Text, []string{`"type":"form.withdrawn"`, `"status":"cancelled"`}) {
		t.Errorf("after the end: %s", last.Text)
	}
}

// TestEachPersonHasABridge has a call that needs two told to the host, and to a person who is reached as another agent. A press of that
// one's button is that agent's vote, and not the host's. Nothing of the host's own is told there, and its buttons end with its bridge.
func TestEachPersonHasABridge(t *testing.T) {
	n, p := openWebhook(t)
	bob, err := n.node.Host().Make(t.Context(), actors.NewAgent{Kind: events.Host, Name: "bob"})
	if err != nil {
		t.Fatal(err)
	}
	c, of := newWebhook(t, "bob")
	c.As, c.Agent = "bob", bob.ID().String()
	settings := filepath.Join(n.folder, "bridges.json")
	if err := bridge.Add(settings, c); err != nil {
		t.Fatal(err)
	}
	n.Restart() // so that no worker begins again while it tells something
	own := n.Approve(`{"command":"ls"}`)
	form := n.ApproveByTwo(`{"command":"git push"}`)
	eventually.Holds(t, "the host is told", func() bool { return len(p.Told(own)) == 1 && len(p.Told(form)) == 1 })
	if err := n.node.Host().Forward(t.Context(), n.ref(form), "bob"); err != nil {
		t.Fatal(err)
	}
	eventually.Holds(t, "bob is told", func() bool { return len(of.Told(form)) == 1 })
	if len(of.Told(own)) > 0 {
		t.Errorf("bob is told of what the host is asked: %v", of.Told(own))
	}
	press := func(at *place, want int) {
		t.Helper()
		resp, err := http.Post(at.Told(form)[0].Buttons["Allow once"], "", nil)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		http.DefaultClient.CloseIdleConnections()
		if resp.StatusCode != want {
			t.Fatalf("the button: %d, want %d", resp.StatusCode, want)
		}
	}
	press(of, http.StatusOK)
	m, err := n.node.Host().Message(t.Context(), n.ref(form))
	if err != nil || m.Outcome != nil || m.Votes == nil || m.Votes.Have != 1 || m.Votes.VotedAs != nil {
		t.Fatalf("after bob's vote: %+v %v", m.Votes, err)
	}
	press(p, http.StatusOK)
	eventually.Holds(t, "both votes allow it", func() bool {
		m, err := n.node.Host().Message(t.Context(), n.ref(form))
		return err == nil && m.Outcome != nil && m.Outcome.Status == view.StatusAnswered
	})
	eventually.Holds(t, "bob is told how it ended", func() bool { return len(of.Told(form)) >= 2 })

	again := n.ApproveByTwo(`{"command":"git push -f"}`)
	if err := n.node.Host().Forward(t.Context(), n.ref(again), "bob"); err != nil {
		t.Fatal(err)
	}
	eventually.Holds(t, "bob is told of another", func() bool { return len(of.Told(again)) == 1 })
	if err := bridge.Remove(settings, "bob"); err != nil {
		t.Fatal(err)
	}
	eventually.Holds(t, "what the bridge has told is removed", func() bool {
		left, err := filepath.Glob(BridgeFile(settings, "bob"))
		return err == nil && len(left) == 0
	})
	form = again
	press(of, http.StatusForbidden)
}

func containsAll(text string, parts []string) bool {
	return !slices.ContainsFunc(parts, func(part string) bool { return !strings.Contains(text, part) })
}

// TestUnknownFormDelaysNoOther checks a record of a form that the node does not have, as after the restore of a backup.
func TestUnknownFormDelaysNoOther(t *testing.T) {
	n, p := openWebhook(t)
	form := n.Approve(`{"command":"ls"}`)
	eventually.Holds(t, "the receiver is told", func() bool { return len(p.Told(form)) == 1 })
	n.close()
	file := BridgeFile(filepath.Join(n.folder, "bridges.json"), "hook")
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var kept map[string]any
	if err := json.Unmarshal(b, &kept); err != nil {
		t.Fatal(err)
	}
	for i := range 20 {
		kept["forms"].(map[string]any)[fmt.Sprintf("01ARZ3NDEKTSV4RRFFQ69G5F%02d@%s", i, strings.Split(form, "@")[1])] = map[string]any{"tries": 1, "told": true}
	}
	if b, err = json.Marshal(kept); err == nil {
		err = os.WriteFile(file, b, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	n.open(func(s *Server) { s.devices.settings = filepath.Join(n.folder, "bridges.json") })
	n.Cancel(form)
	eventually.Within(t, 4*time.Second, "the receiver is told of the end", func() bool { return len(p.Told(form)) == 2 })
}

// TestNoticeWithoutAddressHasNoButtons checks a node that listens on its socket alone.
func TestNoticeWithoutAddressHasNoButtons(t *testing.T) {
	n, p := openWebhook(t)
	n.listen = Off
	n.Restart()
	form := n.Approve(`{"command":"ls"}`)
	eventually.Holds(t, "the receiver is told", func() bool { return len(p.Told(form)) == 1 })
	if told := p.Told(form)[0]; len(told.Buttons) > 0 || strings.Contains(told.Text, "://off") {
		t.Errorf("told %+v", told)
	}
	grants, err := n.node.Host().Names().Grants(t.Context(), view.GrantFilter{})
	if err != nil {
		t.Fatal(err)
	}
	for _, g := range grants {
		if len(g.Outcomes) > 0 && g.Name == "hook" {
			t.Errorf("a right that nobody has: %+v", g)
		}
	}
}
