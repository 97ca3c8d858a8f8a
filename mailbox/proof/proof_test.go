package proof_test

import (
	"bytes"
	"crypto/ed25519"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/oklog/ulid/v2"
	"pgregory.net/rapid"

	"parley"
	"parley/capabilities"
	"parley/events"
	"parley/mailbox"
	"parley/mailbox/passkey"
	. "parley/mailbox/proof"
)

// node is a node with a key, and a log of its own.
type node struct {
	key ed25519.PrivateKey
	id  capabilities.NodeID
	log [][]byte
	at  events.Mark
	has map[capabilities.ID]uint64 // the versions of its mailboxes
}

func newNode(seed byte) *node {
	key := ed25519.NewKeyFromSeed(bytes.Repeat([]byte{seed}, ed25519.SeedSize))
	return &node{key: key, id: capabilities.NodeOf([32]byte(key[32:])), has: map[capabilities.ID]uint64{}}
}

func (n *node) sign(text []byte) ([]byte, error) { return ed25519.Sign(n.key, text), nil }

func (n *node) agent(number byte) capabilities.ID {
	return capabilities.ID{ULID: ulid.ULID{0: 1, 15: number}, Node: n.id}
}

// batch is what one mailbox appends.
type batch struct {
	of   capabilities.ID
	note string
	evs  []events.Event
}

// commit appends a commit with a section for each batch.
func (n *node) commit(t testing.TB, all ...batch) {
	t.Helper()
	c := events.Commit{Number: n.at.Number + 1, Prev: n.at.Hash, At: capabilities.Time(1_700_000_000_000 + n.at.Number), Node: n.id, Blind: events.Blind{byte(n.at.Number), 9}}
	for _, b := range all {
		var body []byte
		for _, e := range b.evs {
			var err error
			if body, err = events.Append(body, events.Recorded{At: c.At, Event: e}); err != nil {
				t.Fatal(err)
			}
		}
		c.Sections = append(c.Sections, events.Section{Mailbox: b.of, First: n.has[b.of] + 1, Count: uint32(len(b.evs)), Note: b.note, Body: body})
		n.has[b.of] += uint64(len(b.evs))
	}
	frame, hash, err := c.Encode(nil)
	if err != nil {
		t.Fatal(err)
	}
	n.log, n.at = append(n.log, frame), events.Mark{Number: c.Number, Hash: hash}
}

// prove makes a proof of a form in a mailbox, as a node does.
func (n *node) prove(t testing.TB, self, form capabilities.ID, change func(*Proof), show func(*events.Section) bool) []byte {
	t.Helper()
	var evs []Placed
	for _, frame := range n.log {
		c, _, err := events.DecodeCommit(frame)
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range c.Sections {
			recorded, err := s.Events()
			if err != nil {
				t.Fatal(err)
			}
			for i, r := range recorded {
				if s.Mailbox == self && IsOf(r.Event, form) {
					evs = append(evs, Placed{s.First + uint64(i), r})
				}
			}
		}
	}
	p, err := Tell(self, evs)
	if err != nil {
		t.Fatal(err)
	}
	for _, frame := range n.log {
		if err := p.Add(frame, evs, show); err != nil {
			t.Fatal(err)
		}
	}
	p.Head, p.Made, p.Names = n.at, 1_700_000_100_000, map[string]string{self.String(): "fae"}
	if change != nil {
		change(p)
	}
	file, err := p.Encode(n.sign)
	if err != nil {
		t.Fatal(err)
	}
	return file
}

// all shows each section that may be shown.
func all(form capabilities.ID) func(*events.Section) bool {
	return func(s *events.Section) bool { return MayShow(s, form) }
}

var names = struct{ fae, host, bob, call, other byte }{1, 2, 3, 10, 11}

// decided returns a node with a call that was allowed, beside the mail of others, and the form.
func decided(t testing.TB, seed byte) (n *node, fae, form capabilities.ID) {
	t.Helper()
	n = newNode(seed)
	fae, host, bob := n.agent(names.fae), n.agent(names.host), n.agent(names.bob)
	form, other := n.agent(names.call), n.agent(names.other)
	n.commit(t, batch{of: bob, evs: []events.Event{&events.NameBound{Name: "private", Value: capabilities.String("of bob")}}})
	n.commit(t, batch{of: fae, evs: []events.Event{asked(form, fae, host, `{"command":"deploy prod"}`)}}, batch{of: bob, evs: []events.Event{&events.NameBound{Name: "b", Value: capabilities.String("hunter2")}}})
	n.commit(t, batch{of: fae, evs: []events.Event{asked(other, fae, host, `{"command":"private call"}`)}})
	n.commit(t, batch{of: bob, evs: []events.Event{&events.NameUnbound{Name: "b"}}}, batch{of: fae, evs: []events.Event{answered(form, host, mailbox.Once)}})
	n.commit(t, batch{of: fae, evs: []events.Event{answered(other, host, mailbox.Deny)}})
	return n, fae, form
}

// signed returns what a passkey signs of an answer to a call, on a page of a node's own machine.
func signed(t testing.TB, n *node, form capabilities.ID, e *events.FormAnswered, change func(*passkey.Statement)) *events.DecisionSigned {
	t.Helper()
	values, _ := e.Values.AsRecord()
	sum, err := passkey.Answered(values, nil)
	if err != nil {
		t.Fatal(err)
	}
	call := parley.Permission{Tool: "Bash", Input: `{"command":"deploy prod"}`, Folder: "/srv/shop", Reason: "it is Friday"}
	statement := passkey.Statement{Form: form, Digest: call.Hash(), Answer: sum, Nonce: "nonce"}
	statement.Decision, _ = mailbox.ReadDecision(e.Values)
	if change != nil {
		change(&statement)
	}
	key := ed25519.NewKeyFromSeed(bytes.Repeat([]byte{7}, ed25519.SeedSize))
	public, err := x509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		t.Fatal(err)
	}
	d := &events.DecisionSigned{Form: form, By: e.By, Passkey: n.agent(20), Key: public, Origin: "http://localhost:7420", Statement: statement.Text()}
	d.ClientData = []byte(`{"type":"webauthn.get","challenge":"` + passkey.Challenge(d.Statement) + `","origin":"http://localhost:7420","crossOrigin":false}`)
	host, client := sha256.Sum256([]byte("localhost")), sha256.Sum256(d.ClientData)
	d.Authenticator = append(host[:], 0x05, 0, 0, 0, 7)
	d.Signature = ed25519.Sign(key, append(bytes.Clone(d.Authenticator), client[:]...))
	return d
}

// decidedSigned is decided, of a decision that a passkey has signed.
func decidedSigned(t testing.TB, change func(*passkey.Statement)) (n *node, fae, form capabilities.ID) {
	t.Helper()
	n = newNode(1)
	fae, host, form := n.agent(names.fae), n.agent(names.host), n.agent(names.call)
	n.commit(t, batch{of: fae, evs: []events.Event{asked(form, fae, host, `{"command":"deploy prod"}`)}})
	end := answered(form, host, mailbox.Once)
	n.commit(t, batch{of: fae, evs: []events.Event{signed(t, n, form, end, change), end}})
	return n, fae, form
}

// TestPasskeyIsInTheProof verifies what a passkey has signed with the file alone, and refuses a node that signs another for it.
func TestPasskeyIsInTheProof(t *testing.T) {
	n, fae, form := decidedSigned(t, nil)
	p := read(t, n.prove(t, fae, form, nil, all(form)), n.id)
	if len(p.Signed) != 1 || p.Signed[0].By != n.agent(names.host) {
		t.Fatalf("it is signed by %+v", p.Signed)
	}
	none := func(*events.Section) bool { return false }
	if p := read(t, n.prove(t, fae, form, func(p *Proof) { p.Question = nil }, none), n.id); len(p.Signed) != 1 {
		t.Errorf("by its digest it is signed by %+v", p.Signed)
	}
	for name, lie := range map[string]func(p *Proof){
		"another signature": func(p *Proof) { p.Signed[0].Signature[0]++ },
		"another statement": func(p *Proof) { p.Signed[0].Statement += " " },
		"another origin":    func(p *Proof) { p.Signed[0].Origin = "https://node.example" },
		"who signed":        func(p *Proof) { p.Signed[0].By = n.agent(names.bob) },
		"of another form":   func(p *Proof) { p.Signed[0].Form = n.agent(names.other) },
		"what was decided":  func(p *Proof) { p.Outcome.Decision = mailbox.Always },
		"what was said":     func(p *Proof) { p.Outcome.Values = json.RawMessage(`{"decision":"once"}`) },
		"what was shown":    func(p *Proof) { p.Digest[0]++ },
		"the device's data": func(p *Proof) { p.Signed[0].Authenticator[32] = 1 },
		"too many":          func(p *Proof) { p.Signed = append(p.Signed, p.Signed[0], p.Signed[0], p.Signed[0]) },
	} {
		for _, show := range []func(*events.Section) bool{all(form), none} {
			if _, err := Read(n.prove(t, fae, form, lie, show), n.id); parley.CodeOf(err) != parley.FileDamaged {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
	if _, err := Read(n.prove(t, fae, form, func(p *Proof) { p.Signed = nil }, all(form)), n.id); parley.CodeOf(err) != parley.FileDamaged {
		t.Errorf("left out: %v", err)
	}
	// What signs another decision, form or question is none of the decision.
	for name, change := range map[string]func(*passkey.Statement){
		"another decision": func(s *passkey.Statement) { s.Decision = mailbox.Always },
		"another form":     func(s *passkey.Statement) { s.Form = fae },
		"another question": func(s *passkey.Statement) { s.Digest[0]++ },
		"another answer":   func(s *passkey.Statement) { s.Answer[0]++ },
		"an act":           func(s *passkey.Statement) { s.Act = "add" },
	} {
		n, fae, form := decidedSigned(t, change)
		if p := read(t, n.prove(t, fae, form, nil, all(form)), n.id); len(p.Signed) != 0 {
			t.Errorf("%s: %+v", name, p.Signed)
		}
	}
}

func asked(form, from, to capabilities.ID, input string) *events.FormRequested {
	return &events.FormRequested{
		ID: form, From: from, To: to, Kind: events.Approval, Title: "Bash", Description: input, Date: 1_700_000_000_000,
		Call:   &events.Call{Folder: "/srv/shop", Decider: to, Reason: "it is Friday"},
		Fields: []events.Field{{Name: "decision", Type: events.Buttons, Options: []events.Option{{Value: "deny"}, {Value: "once"}}}},
	}
}

func answered(form, by capabilities.ID, decision string) *events.FormAnswered {
	return &events.FormAnswered{Form: form, By: by, Date: 1_700_000_050_000, Values: capabilities.Record(map[string]capabilities.Value{
		"decision": capabilities.String(decision), "reason": capabilities.String("as we said"),
	})}
}

func read(t testing.TB, file []byte, key capabilities.NodeID) *Proof {
	t.Helper()
	p, err := Read(file, key)
	if err != nil {
		t.Fatalf("%v\n%s", err, file)
	}
	return p
}

func TestProofSaysWhatWasDecided(t *testing.T) {
	n, fae, form := decided(t, 1)
	file := n.prove(t, fae, form, nil, all(form))
	p := read(t, file, n.id)
	q, err := p.Reading()
	if err != nil {
		t.Fatal(err)
	}
	if q.Permission.Input != `{"command":"deploy prod"}` || q.Permission.Hash() != p.Digest {
		t.Errorf("it shows %+v with the digest %s", q.Permission, p.Digest)
	}
	if o := p.Outcome; o.By != n.agent(names.host) || o.At != 1_700_000_050_000 || o.Decision != mailbox.Once || o.Reason != "as we said" || !o.Allowed {
		t.Errorf("the outcome is %+v", o)
	}
	if len(p.Events) != 2 || !p.Events[0].Shown || !p.Events[1].Shown || p.Events[0].Commit != 2 || p.Events[1].Commit != 4 {
		t.Errorf("the events are %+v", p.Events)
	}
	for _, private := range []string{"hunter2", "private call", "of bob"} {
		if strings.Contains(string(file), private) || contains(p, private) {
			t.Errorf("the proof has %q", private)
		}
	}
	if !contains(p, "deploy prod") {
		t.Error("the log in the proof does not have the call")
	}
	if len(file) > 4<<10 {
		t.Errorf("it has %d bytes", len(file))
	}
}

// contains reports whether a section that a proof shows has a text.
func contains(p *Proof, text string) bool {
	for _, x := range p.Log {
		for _, part := range x.Shown {
			if bytes.Contains(part.Content, []byte(text)) {
				return true
			}
		}
	}
	return false
}

// TestDigestTellsNothingOfTheQuestion leaves out the question, and the sections that have it.
func TestDigestTellsNothingOfTheQuestion(t *testing.T) {
	n, fae, form := decided(t, 1)
	file := n.prove(t, fae, form, func(p *Proof) { p.Question = nil }, func(s *events.Section) bool {
		evs, _ := s.Events()
		_, asks := evs[0].Event.(*events.FormRequested)
		return !asks && MayShow(s, form)
	})
	p := read(t, file, n.id)
	if strings.Contains(string(file), "deploy") || contains(p, "deploy") {
		t.Error("it shows the call")
	}
	same := parley.Permission{Tool: "Bash", Input: `{"command":"deploy prod"}`, Folder: "/srv/shop", Reason: "it is Friday"}
	if same.Hash() != p.Digest || p.Outcome.Decision != mailbox.Once {
		t.Errorf("the digest is %s", p.Digest)
	}
}

// TestAnyChangedByteIsRefused flips each byte of a proof, and cuts it at each.
func TestAnyChangedByteIsRefused(t *testing.T) {
	n, fae, form := decided(t, 1)
	file := n.prove(t, fae, form, nil, all(form))
	for i := range file {
		if p, err := Read(file[:i], capabilities.NodeID{}); err == nil {
			t.Fatalf("cut to %d bytes it is %+v", i, p)
		}
		for _, flip := range []byte{1 << (i % 8), 0x20, 0xff} {
			changed := bytes.Clone(file)
			changed[i] ^= flip
			if p, err := Read(changed, capabilities.NodeID{}); err == nil {
				t.Fatalf("byte %d, changed by %x: %+v", i, flip, p)
			}
		}
	}
	for name, longer := range map[string][]byte{"a line more": append(bytes.Clone(file), '\n'), "a byte more": append(bytes.Clone(file), ' '), "twice": append(bytes.Clone(file), file...)} {
		if _, err := Read(longer, n.id); parley.CodeOf(err) != parley.FileDamaged {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestProofOfAnotherNodeIsRefused(t *testing.T) {
	n, fae, form := decided(t, 1)
	other, _, _ := decided(t, 2)
	file := n.prove(t, fae, form, nil, all(form))
	if _, err := Read(file, other.id); parley.CodeOf(err) != parley.NotPermitted {
		t.Errorf("the proof of another node: %v", err)
	}
	// Another node's key over the same words, and under the first's name.
	n.key = other.key
	if _, err := Read(n.prove(t, fae, form, nil, all(form)), capabilities.NodeID{}); parley.CodeOf(err) != parley.FileDamaged {
		t.Errorf("signed by another: %v", err)
	}
}

// TestSignedLieIsRefused has the node sign what the events that it shows do not say.
func TestSignedLieIsRefused(t *testing.T) {
	n, fae, form := decided(t, 1)
	bob, other := n.agent(names.bob), n.agent(names.other)
	for name, lie := range map[string]func(p *Proof){
		"who decided":          func(p *Proof) { p.Outcome.By = bob },
		"when":                 func(p *Proof) { p.Outcome.At++ },
		"what":                 func(p *Proof) { p.Outcome.Decision = mailbox.Deny },
		"whether it may":       func(p *Proof) { p.Outcome.Allowed = false },
		"the status":           func(p *Proof) { p.Outcome.Status = "declined" },
		"the reason":           func(p *Proof) { p.Outcome.Reason = "" },
		"the values":           func(p *Proof) { p.Outcome.Values = json.RawMessage(`{}`) },
		"who asked":            func(p *Proof) { p.From = bob },
		"who was asked":        func(p *Proof) { p.To = bob },
		"when it was asked":    func(p *Proof) { p.Asked++ },
		"the kind":             func(p *Proof) { p.Kind = events.PlainForm },
		"the digest":           func(p *Proof) { p.Digest[0]++ },
		"the revision":         func(p *Proof) { p.Revision++ },
		"the question":         func(p *Proof) { p.Question = json.RawMessage(strings.ReplaceAll(string(p.Question), "prod", "test")) },
		"no permission":        func(p *Proof) { p.Question = json.RawMessage(`{}`) },
		"a vote":               func(p *Proof) { p.Votes = []Vote{{By: bob, Outcome: "once"}} },
		"another form":         func(p *Proof) { p.Form = other },
		"another mailbox":      func(p *Proof) { p.Mailbox = bob },
		"no event":             func(p *Proof) { p.Events = nil },
		"one event":            func(p *Proof) { p.Events = p.Events[1:] },
		"an event twice":       func(p *Proof) { p.Events = append(p.Events, p.Events[1]) },
		"another order":        func(p *Proof) { p.Events[0], p.Events[1] = p.Events[1], p.Events[0] },
		"another commit":       func(p *Proof) { p.Events[0].Commit = 4 },
		"a commit not there":   func(p *Proof) { p.Events[0].Commit = 3 },
		"another section":      func(p *Proof) { p.Events[0].Section = 1 },
		"a section not there":  func(p *Proof) { p.Events[0].Section = 2 },
		"a section before all": func(p *Proof) { p.Events[0].Section = -1 },
		"another version":      func(p *Proof) { p.Events[0].Version = 7 },
		"another type":         func(p *Proof) { p.Events[0].Type = "form_answered" },
		"a section of nothing": func(p *Proof) { p.Events[0].Shown = false },
		"no commits":           func(p *Proof) { p.Log = nil },
		"another commit's":     func(p *Proof) { p.Log[0], p.Log[1] = p.Log[1], p.Log[0] },
		"a log that ends":      func(p *Proof) { p.Head.Number = 3 },
		"another end":          func(p *Proof) { p.Head = events.Mark{Number: 4} },
		"another node":         func(p *Proof) { p.Node = newNode(2).id },
	} {
		if p, err := Read(n.prove(t, fae, form, lie, all(form)), capabilities.NodeID{}); parley.CodeOf(err) != parley.FileDamaged {
			t.Errorf("%s: %v, %+v", name, err, p)
		}
	}
}

// TestSharedSectionIsNotShown has the form share its section with what is of others, or with a secret.
func TestSharedSectionIsNotShown(t *testing.T) {
	for name, c := range map[string]struct {
		beside events.Event
		shown  bool
	}{
		"an acknowledgement":         {&events.MessageDelivered{Items: []uint64{1}}, true},
		"the rule that it made":      {&events.RuleAdded{Form: newNode(1).agent(names.call), Tool: "Bash"}, true},
		"the rule of another form":   {&events.RuleAdded{Form: newNode(1).agent(names.other), Tool: "Bash"}, false},
		"the mandate that it gave":   {&events.MandateGiven{Form: newNode(1).agent(names.call), Calls: 1}, true},
		"that of another form":       {&events.MandateGiven{Form: newNode(1).agent(names.other), Calls: 1}, false},
		"the session that asked":     {&events.CallerNamed{Form: newNode(1).agent(names.call)}, true},
		"a name":                     {&events.NameBound{Name: "private"}, false},
		"the answer of another form": {answered(newNode(1).agent(names.other), newNode(1).agent(names.host), mailbox.Once), false},
	} {
		n := newNode(1)
		fae, host, form := n.agent(names.fae), n.agent(names.host), n.agent(names.call)
		n.commit(t, batch{of: fae, evs: []events.Event{asked(form, fae, host, `{}`)}})
		n.commit(t, batch{of: fae, evs: []events.Event{c.beside, answered(form, host, mailbox.Once)}})
		p := read(t, n.prove(t, fae, form, nil, all(form)), n.id)
		if p.Events[1].Shown != c.shown || p.Outcome.Decision != mailbox.Once || !p.Outcome.Allowed {
			t.Errorf("%s: %+v, %+v", name, p.Events, p.Outcome)
		}
	}
}

// TestSecretsStayMasked proves the answer to a form with a secret field.
func TestSecretsStayMasked(t *testing.T) {
	n := newNode(1)
	fae, host, form := n.agent(names.fae), n.agent(names.host), n.agent(names.call)
	n.commit(t, batch{of: fae, evs: []events.Event{&events.FormRequested{ID: form, From: fae, To: host, Description: "The password?", Date: 5, Fields: []events.Field{{Name: "password", Type: events.Secret}, {Name: "user", Type: events.Text}}}}})
	n.commit(t, batch{of: fae, evs: []events.Event{&events.FormAnswered{Form: form, By: host, Date: 6, Values: capabilities.Record(map[string]capabilities.Value{"password": capabilities.Sealed([]byte("CIPHERTEXT")), "user": capabilities.String("<nora>")})}}})
	file := n.prove(t, fae, form, nil, all(form))
	p := read(t, file, n.id)
	var values map[string]any
	if err := json.Unmarshal(p.Outcome.Values, &values); err != nil {
		t.Fatal(err)
	}
	if p.Events[1].Shown || contains(p, "CIPHERTEXT") || values["user"] != "<nora>" || fmt.Sprint(values["password"]) != "map[$sealed:true]" {
		t.Errorf("%+v %v", p.Events, values)
	}
}

func TestOpenFormHasNoProof(t *testing.T) {
	n := newNode(1)
	fae, form := n.agent(names.fae), n.agent(names.call)
	_, err := Tell(fae, []Placed{{1, events.Recorded{Event: asked(form, fae, n.agent(names.host), `{}`)}}})
	if parley.CodeOf(err) != parley.InvalidArgument {
		t.Error(err)
	}
	if _, err := Tell(fae, nil); err == nil {
		t.Error("no events are a form")
	}
}

// TestVotesAreTold has two agree on a call, one of whom voted first.
func TestVotesAreTold(t *testing.T) {
	n, form := newNode(1), newNode(1).agent(names.call)
	fae, host, bob := n.agent(names.fae), n.agent(names.host), n.agent(names.bob)
	asks := asked(form, fae, host, `{}`)
	asks.Route = &events.Route{Need: 2}
	digest := (&mailbox.Question{FormRequested: asks}).QuestionDigest()
	vote := func(o events.VoteOutcome) *events.VoteCast {
		return &events.VoteCast{Form: form, By: host, Principal: host, Revision: 1, Outcome: o, Digest: digest, Date: 7}
	}
	for _, c := range []struct {
		host    events.VoteOutcome
		allowed bool
	}{{"once", true}, {"deny", false}} {
		n := newNode(1)
		n.commit(t, batch{of: fae, evs: []events.Event{asks}})
		n.commit(t, batch{of: fae, evs: []events.Event{vote(c.host)}})
		n.commit(t, batch{of: fae, evs: []events.Event{answered(form, bob, mailbox.Once)}})
		p := read(t, n.prove(t, fae, form, nil, all(form)), n.id)
		if len(p.Votes) != 1 || p.Votes[0].By != host || p.Votes[0].Outcome != c.host || p.Votes[0].Digest != digest || p.Outcome.Allowed != c.allowed {
			t.Errorf("%+v, %+v", p.Votes, p.Outcome)
		}
	}
}

// TestAmendedFormIsProvenAsItWasAnswered proves an answer to the second revision.
func TestAmendedFormIsProvenAsItWasAnswered(t *testing.T) {
	n := newNode(1)
	fae, host, form := n.agent(names.fae), n.agent(names.host), n.agent(names.call)
	amended := &events.FormAmended{Form: form, Revision: 2, Description: "Which port?", Fields: []events.Field{{Name: "port", Type: events.Number, Pattern: json.RawMessage(`{ "minimum": 1 }`)}}}
	amended.Digest = amended.QuestionDigest()
	n.commit(t, batch{of: fae, evs: []events.Event{&events.FormRequested{ID: form, From: fae, To: host, Description: "Port?", Fields: []events.Field{{Name: "port"}}}}})
	n.commit(t, batch{of: fae, evs: []events.Event{amended}})
	n.commit(t, batch{of: fae, evs: []events.Event{&events.FormCancelled{Form: form, Reason: events.Declined, By: host, Note: "not mine", Date: 9}}})
	p := read(t, n.prove(t, fae, form, nil, all(form)), n.id)
	q, err := p.Reading()
	if err != nil || q.Description != "Which port?" || p.Revision != 2 || p.Digest != amended.Digest {
		t.Errorf("%v: %+v", err, p)
	}
	if p.Outcome.Status != "declined" || p.Outcome.Reason != "not mine" || p.Outcome.By != host {
		t.Errorf("%+v", p.Outcome)
	}
}

// TestProofsOfAnyLogVerify makes logs with forms among the mail of several, and proves each form that has ended.
func TestProofsOfAnyLogVerify(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		n := newNode(3)
		fae, host := n.agent(names.fae), n.agent(names.host)
		others := []capabilities.ID{n.agent(20), n.agent(21), fae}
		var open, ended []capabilities.ID
		for number := range rapid.IntRange(1, 12).Draw(rt, "commits") {
			var all []batch
			for range rapid.IntRange(0, 3).Draw(rt, "others") {
				all = append(all, batch{of: rapid.SampledFrom(others).Draw(rt, "of"), evs: []events.Event{&events.NameBound{Name: rapid.StringN(0, 5, 20).Draw(rt, "name")}}})
			}
			var evs []events.Event
			if rapid.Bool().Draw(rt, "ask") {
				form := n.agent(byte(100 + number))
				evs = append(evs, asked(form, fae, host, `{"command":"`+fmt.Sprint(number)+`"}`))
				open = append(open, form)
			}
			for len(open) > 0 && rapid.Bool().Draw(rt, "answer") {
				evs = append(evs, answered(open[0], host, rapid.SampledFrom([]string{"once", "deny", "always", "never"}).Draw(rt, "decision")))
				ended, open = append(ended, open[0]), open[1:]
			}
			if len(evs) > 0 {
				all = append(all, batch{of: fae, evs: evs})
			}
			n.commit(t, all...)
		}
		for _, form := range ended {
			file := n.prove(t, fae, form, nil, all(form))
			p, err := Read(file, n.id)
			if err != nil {
				rt.Fatal(err)
			}
			if p.Form != form || len(p.Events) != 2 || p.Outcome.Allowed != (p.Outcome.Decision == "once" || p.Outcome.Decision == "always") {
				rt.Fatalf("%+v", p)
			}
			at := rapid.IntRange(0, len(file)-1).Draw(rt, "at")
			file[at] ^= byte(rapid.IntRange(1, 255).Draw(rt, "change"))
			if _, err := Read(file, n.id); err == nil {
				rt.Fatalf("byte %d was changed", at)
			}
		}
	})
}

// vector is a file in testdata, and what reading it says: "" for a valid proof, else the code of the refusal.
type vector struct {
	File     string              `json:"file"`
	Key      capabilities.NodeID `json:"key"`
	Refused  parley.Code         `json:"refused,omitempty"`
	Form     capabilities.ID     `json:"form,omitzero"`
	Digest   string              `json:"digest,omitempty"`
	Decision string              `json:"decision,omitempty"`
	Commits  []string            `json:"commits,omitempty"` // the hashes of the commits that it has
}

// TestVectors reads the test vectors, which other programs that verify proofs can read too. PARLEY_WRITE_GOLDEN=1 makes them anew.
func TestVectors(t *testing.T) {
	if os.Getenv("PARLEY_WRITE_GOLDEN") != "" {
		writeVectors(t)
	}
	text, err := os.ReadFile(filepath.Join("testdata", "vectors.json"))
	if err != nil {
		t.Fatal(err)
	}
	var vectors []vector
	if err := json.Unmarshal(text, &vectors); err != nil {
		t.Fatal(err)
	}
	if len(vectors) < 5 {
		t.Errorf("there are %d vectors", len(vectors))
	}
	for _, v := range vectors {
		file, err := os.ReadFile(filepath.Join("testdata", v.File))
		if err != nil {
			t.Fatal(err)
		}
		p, err := Read(file, v.Key)
		if parley.CodeOf(err) != v.Refused {
			t.Errorf("%s: %v", v.File, err)
		}
		if err != nil {
			continue
		}
		var commits []string
		for i := range p.Log {
			_, hash, err := p.Log[i].Decode()
			if err != nil {
				t.Fatal(err)
			}
			commits = append(commits, hash.String())
		}
		if p.Form != v.Form || p.Digest.String() != v.Digest || p.Outcome.Decision != v.Decision || fmt.Sprint(commits) != fmt.Sprint(v.Commits) {
			t.Errorf("%s: %+v with the commits %v", v.File, p, commits)
		}
	}
}

func writeVectors(t *testing.T) {
	t.Helper()
	n, fae, form := decided(t, 1)
	other := newNode(2).id
	whole := n.prove(t, fae, form, nil, all(form))
	none := func(*events.Section) bool { return false }
	lie := func(p *Proof) { p.Outcome.Decision = "always" }
	m, asker, second := decidedSigned(t, nil)
	passkeyed := m.prove(t, asker, second, nil, all(second))
	forged := m.prove(t, asker, second, func(p *Proof) { p.Signed[0].Signature[0]++ }, none)
	changed := bytes.Replace(whole, []byte("Bash"), []byte("bash"), 1)
	var vectors []vector
	for _, v := range []struct {
		name    string
		text    []byte
		key     capabilities.NodeID
		refused parley.Code
	}{
		{"whole.proof", whole, n.id, ""},
		{"digest.proof", n.prove(t, fae, form, func(p *Proof) { p.Question = nil }, none), n.id, ""},
		{"whole.proof", whole, other, parley.NotPermitted},
		{"changed.proof", changed, n.id, parley.FileDamaged},
		{"cut.proof", whole[:len(whole)-20], n.id, parley.FileDamaged},
		{"passkey.proof", passkeyed, m.id, ""},
		{"passkey-forged.proof", forged, m.id, parley.FileDamaged},
		{"lie.proof", n.prove(t, fae, form, lie, all(form)), n.id, parley.FileDamaged},
	} {
		if err := os.WriteFile(filepath.Join("testdata", v.name), v.text, 0o644); err != nil {
			t.Fatal(err)
		}
		w := vector{File: v.name, Key: v.key, Refused: v.refused}
		if v.refused == "" {
			p := read(t, v.text, v.key)
			w.Form, w.Digest, w.Decision = p.Form, p.Digest.String(), p.Outcome.Decision
			for i := range p.Log {
				_, hash, err := p.Log[i].Decode()
				if err != nil {
					t.Fatal(err)
				}
				w.Commits = append(w.Commits, hash.String())
			}
		}
		vectors = append(vectors, w)
	}
	text, err := json.MarshalIndent(vectors, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join("testdata", "vectors.json"), append(text, '\n'), 0o644); err != nil {
		t.Fatal(err)
	}
}

// FuzzProof reads any file, and any words that the node has signed. Reading does not panic, and what is read is signed.
func FuzzProof(f *testing.F) {
	n, fae, form := decided(f, 1)
	whole := n.prove(f, fae, form, nil, all(form))
	lines := bytes.SplitN(whole, []byte("\n"), 3)
	f.Add(whole, false)
	f.Add(lines[1], true)
	f.Add([]byte(`{"events":[{},{}],"log":[{"head":"UExZAcQA","hashes":[]}]}`), true)
	f.Fuzz(func(t *testing.T, text []byte, sign bool) {
		file := text
		if sign {
			file = append(append(append(bytes.Clone(lines[0]), '\n'), text...), '\n')
			signature, _ := n.sign(file)
			file = append(base64.RawStdEncoding.AppendEncode(file, signature), '\n')
		}
		p, err := Read(file, n.id)
		if err != nil {
			return
		}
		if _, err := p.Reading(); err != nil {
			t.Fatal(err)
		}
		if again, err := p.Encode(n.sign); err != nil {
			t.Fatal(err)
		} else if _, err := Read(again, n.id); err != nil {
			t.Fatal(err)
		}
	})
}

// BenchmarkRead verifies a proof of a call.
func BenchmarkRead(b *testing.B) {
	n, fae, form := decided(b, 1)
	file := n.prove(b, fae, form, nil, all(form))
	b.SetBytes(int64(len(file)))
	for range b.N {
		if _, err := Read(file, n.id); err != nil {
			b.Fatal(err)
		}
	}
}
