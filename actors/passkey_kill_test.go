package actors

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"parley"
	"parley/actors/view"
	"parley/capabilities"
	"parley/events"
	"parley/gateway/passkeys"
	"parley/internal/passkeytest"
	"parley/mailbox"
)

// signedNodeEnv is the environment variable with the folder of a node whose host allows calls by a passkey until it is killed.
const signedNodeEnv = "PARLEY_TEST_SIGNED_NODE"

const signedOrigin = "http://localhost:7420"

// noTest ends a process that is no test where a helper of tests fails.
type noTest struct{ testing.TB }

func (noTest) Helper()           {}
func (noTest) Fatal(args ...any) { fmt.Println("failed", args); os.Exit(1) }

// runSignedNode runs a node with an agent that asks about calls which want a passkey, and a host that signs. It prints each step of each
// call, a line each: asked, sent with what was signed, held before that arrives, decided. It never returns.
func runSignedNode(folder string) {
	n, err := Open(context.Background(), Options{Folder: folder, Name: "signed"})
	if err == nil {
		err = signForever(context.Background(), n, passkeytest.Kept(noTest{}, filepath.Dir(folder), signedOrigin))
	}
	fmt.Println("failed", err)
	os.Exit(1)
}

func signForever(ctx context.Context, n *Node, d *passkeytest.Device) error {
	var challenges passkeys.Challenges
	SetChallenges(n, challenges.Answer)
	a, err := n.ActAs(ctx, "fae")
	if parley.CodeOf(err) == parley.UnknownName {
		if a, err = n.Host().Make(ctx, NewAgent{Kind: events.Guest, Name: "fae"}); err == nil {
			_, err = PasskeysOf(n.Host()).Add(ctx, d.Added(noTest{}, "phone"))
		}
	}
	for err == nil {
		var p view.Permitted
		if p, err = a.Approve(ctx, mailbox.RequestApproval{Permission: parley.Permission{Tool: "pay", Input: "{}", Passkey: true}}); err != nil {
			return err
		}
		fmt.Println("asked", p.Form)
		_, err = signCall(ctx, n, &challenges, d, noTest{}, p.Form, func(s *parley.PasskeySignature) {
			text, err := json.Marshal(s)
			if err != nil {
				noTest{}.Fatal(err)
			}
			fmt.Println("sent", p.Form, base64.StdEncoding.EncodeToString(text))
			if rand.IntN(30) == 0 { // it is killed here, before anything of it comes to the node
				fmt.Println("held", p.Form)
				select {}
			}
		})
		if err == nil {
			fmt.Println("decided", p.Form)
		}
	}
	return err
}

var onceText = []parley.FieldText{{Name: "decision", Text: mailbox.Once}}

// signCall has the host allow a call by its passkey.
func signCall(ctx context.Context, n *Node, c *passkeys.Challenges, d *passkeytest.Device, tb testing.TB, form capabilities.ID, sent func(*parley.PasskeySignature)) (view.Outcome, error) {
	ref, ans := capabilities.FormID(form), parley.Answer{Texts: onceText}
	s, _, err := PasskeysOf(n.Host()).Statement(ctx, ref, ans)
	if err != nil {
		return view.Outcome{}, err
	}
	text := c.Ask(n.Host().ID(), s)
	ans.Passkey = d.Sign(tb, text)
	sent(ans.Passkey)
	return n.Host().Answer(ctx, ref, ans)
}

// TestKilledNodeTakesASignatureOnce kills a node with SIGKILL repeatedly between the challenge, what was signed, the decision and its reply.
// Each call is decided once, with what was signed of it, or not at all; what was signed before a kill is good for nothing after it, and a
// new signature is taken.
func TestKilledNodeTakesASignatureOnce(t *testing.T) {
	t.Parallel()
	rounds := 12
	if os.Getenv("PARLEY_NIGHTLY") != "" {
		rounds = 100
	}
	root := t.TempDir()
	folder := filepath.Join(root, "node")
	sent, decided, at := map[string]*parley.PasskeySignature{}, map[string]bool{}, map[string]int{}
	var forms []string
	for range rounds {
		left, last := 10+rand.IntN(60), ""
		killNode(t, signedNodeEnv, folder, func(words []string) (bool, error) {
			switch last = words[0]; last {
			case "failed":
				return false, errors.New("it has failed")
			case "asked":
				forms = append(forms, words[1])
			case "sent":
				text, err := base64.StdEncoding.DecodeString(words[2])
				if err != nil {
					return false, err
				}
				sent[words[1]] = &parley.PasskeySignature{}
				if err := json.Unmarshal(text, sent[words[1]]); err != nil {
					return false, err
				}
			case "decided":
				decided[words[1]] = true
			}
			left--
			return left > 0 && last != "held", nil
		})
		at[last]++
	}
	n := openNode(t, folder)
	var challenges passkeys.Challenges
	SetChallenges(n, challenges.Answer)
	d := passkeytest.Kept(t, root, signedOrigin)
	fae, err := n.ActAs(t.Context(), "fae")
	if err != nil {
		t.Fatal(err)
	}
	isAnswered := func(form capabilities.ID) bool {
		t.Helper()
		m, err := fae.Message(t.Context(), capabilities.FormID(form))
		if err != nil {
			t.Fatal(err)
		}
		if m.Outcome != nil && (!m.Outcome.Signed || !m.Outcome.Allowed) {
			t.Errorf("%s ended as %+v", form, m.Outcome)
		}
		return m.Outcome != nil
	}
	open := 0
	for _, text := range forms {
		form, err := capabilities.ParseID(text)
		if err != nil {
			t.Fatal(err)
		}
		was := isAnswered(form)
		if decided[text] && !was {
			t.Errorf("%s was decided, and is open", text)
		}
		if s := sent[text]; s != nil {
			if _, err := n.Host().Answer(t.Context(), capabilities.FormID(form), parley.Answer{Texts: onceText, Passkey: s}); parley.CodeOf(err) != parley.PasskeyRefused && !was || err == nil {
				t.Errorf("what was signed of %s is good once more: %v", text, err)
			}
			if isAnswered(form) != was {
				t.Errorf("what was signed of %s before has decided it", text)
			}
		}
		if was {
			continue
		}
		open++
		if _, err := signCall(t.Context(), n, &challenges, d, t, form, func(*parley.PasskeySignature) {}); err != nil || !isAnswered(form) {
			t.Errorf("a new signature of %s: %v", text, err)
		}
	}
	signed, answered := map[capabilities.ID]int{}, map[capabilities.ID]int{}
	l, err := fae.Log(t.Context(), 0, 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range l.Entries {
		switch e := e.Payload.(type) {
		case *events.DecisionSigned:
			signed[e.Form]++
		case *events.FormAnswered:
			if answered[e.Form]++; signed[e.Form] != 1 || answered[e.Form] != 1 {
				t.Errorf("%s was signed %d times, and answered %d times", e.Form, signed[e.Form], answered[e.Form])
			}
		}
	}
	if len(answered) < len(forms) || len(signed) != len(answered) {
		t.Errorf("%d calls, %d answered, %d signed", len(forms), len(answered), len(signed))
	}
	if _, err := n.Verify(t.Context()); err != nil {
		t.Error(err)
	}
	t.Logf("%d calls in %d lives, which ended after %v; %d were open", len(forms), rounds, at, open)
}
