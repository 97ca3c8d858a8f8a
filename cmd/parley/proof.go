package main

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"parley"
	"parley/actors/view"
	"parley/capabilities"
	"parley/cmd/parley/show"
	"parley/cmd/parley/terminal"
	"parley/events"
	"parley/gateway/api"
	"parley/mailbox/passkey"
	"parley/mailbox/proof"
)

func proofCommand(env *environment) *cobra.Command {
	var r api.ProofRequest
	c := &cobra.Command{
		Use:   "proof FORM",
		Short: "Print a proof of a decision, for somebody who has no access to the node",
		Long: `Prints a file that shows what was decided on a form: what was shown, the decision, by whom and when, and the events of the log that
say so, signed by the node. "parley proof verify" reads it with the node's public key, and needs no node. FORM is a number in
the inbox, or an ID. Values of secret fields are not in it. docs/proofs.md says what a proof proves, and what it does not.`,
		Example: `  parley proof 12 > decision.proof
  parley proof 12 --digest > decision.proof     what was shown by its digest alone
  parley proof verify decision.proof --key NDA…`,
		Args: exactly("FORM"),

		RunE: func(c *cobra.Command, args []string) error {
			r.Acting, r.FormRef = env.acting(), api.RefTo(args[0])
			got, err := api.ProveForm.Do(c.Context(), env, r)
			if err != nil {
				return err
			}
			if env.options.json {
				return env.printJSON(got)
			}
			_, err = io.WriteString(env.stdout, got.Proof)
			return err
		},
	}
	c.Flags().BoolVar(&r.DigestOnly, "digest", false, "do not tell what was shown, but the digest of it")
	return noun(c, verifyProofCommand(env))
}

func verifyProofCommand(env *environment) *cobra.Command {
	var key, form, signer string
	c := &cobra.Command{
		Use:   "verify FILE",
		Short: "Verify a proof, without a node",
		Long: `Reads a proof from a file, or from standard input if FILE is -, and says what it proves. It fails if the file was changed, or is of another
node than the one with the public key. "parley node key" prints a node's key: get it from who runs that node, and not with the
proof. Without --key it says what the file says, and fails: anybody can have made it.`,
		Example: "  parley proof verify decision.proof --key NDA…\n  parley proof verify - --key NDA… < decision.proof",
		Args:    exactly("FILE"),
		RunE: func(c *cobra.Command, args []string) error {
			var node capabilities.NodeID
			if key != "" {
				var err error
				if node, err = capabilities.ParseNodeID(key); err != nil {
					return err
				}
			}
			file, err := readProof(env, args[0])
			if err != nil {
				return err
			}
			p, err := proof.Read(file, node)
			if err != nil {
				return err
			}
			if form != "" && form != p.Form.String() && form != p.Form.ULID.String() {
				return parley.Refuse(parley.NotPermitted, "the proof is of form %s, and not of %s", p.Form, parley.Quoted(form, 100))
			}
			if signer != "" && !isSignedBy(p, signer) {
				return parley.Refuse(parley.NotPermitted, "the decision was not signed with the passkey %s", parley.Quoted(signer, 100)).WithHint("parley passkey ls shows the fingerprints of keys, on the node")
			}
			m, err := provenMessage(p)
			if err != nil {
				return err
			}
			v := provenDecision{Verified: key != "", Node: p.Node, Form: p.Form, Made: p.Made, Digest: p.Digest, Revision: p.Revision, Asked: p.Asked, From: p.From, To: p.To, Names: p.Names, Question: p.Question, Votes: p.Votes, Outcome: p.Outcome, Signed: signersOf(p), Events: p.Events, Head: p.Head}
			err = env.print(v, func() string { return provenText(p, m, key != "", env.screen()) })
			if err == nil && key == "" {
				err = parley.Refuse(parley.Unauthenticated, "the proof was held against no key: anybody can have made it").WithHint("get the node's key from who runs it, by parley node key, and give it with --key")
			}
			return err
		},
	}
	c.Flags().StringVar(&key, "key", "", "the public `key` of the node that has to have signed it")
	c.Flags().StringVar(&signer, "passkey", "", "refuse a decision that was not signed with the passkey of this `fingerprint`")
	c.Flags().StringVar(&form, "form", "", "refuse a proof of another form than the one with this `ID`")
	return c
}

// provenDecision is the JSON form of what a proof says.
type provenDecision struct {
	Verified bool                `json:"verified"` // the node is the one that was given with --key
	Node     capabilities.NodeID `json:"node"`
	Form     capabilities.ID     `json:"form"`
	From     capabilities.ID     `json:"from"`
	To       capabilities.ID     `json:"to"`
	Names    map[string]string   `json:"names,omitempty"` // by IDs, as who had the proof made calls them
	Asked    capabilities.Time   `json:"asked"`
	Revision uint64              `json:"revision"`
	Digest   events.Hash         `json:"digest"`
	Question json.RawMessage     `json:"question,omitempty"`
	Votes    []proof.Vote        `json:"votes,omitempty"`
	Outcome  proof.Outcome       `json:"outcome"`
	Signed   []provenSigner      `json:"signed,omitempty"`
	Events   []proof.Event       `json:"events"`
	Head     events.Mark         `json:"head"`
	Made     capabilities.Time   `json:"made"`
}

// provenSigner is whose passkey has signed the decision, or a vote.
type provenSigner struct {
	By          capabilities.ID `json:"by"`
	Fingerprint string          `json:"fingerprint"` // of the passkey's key
	Origin      string          `json:"origin"`      // of the page
}

func signersOf(p *proof.Proof) (all []provenSigner) {
	for i := range p.Signed {
		all = append(all, provenSigner{By: p.Signed[i].By, Fingerprint: passkey.Fingerprint(p.Signed[i].Key), Origin: p.Signed[i].Origin})
	}
	return all
}

// isSignedBy reports whether who decided has signed with the key of a fingerprint.
func isSignedBy(p *proof.Proof, fingerprint string) bool {
	return slices.ContainsFunc(signersOf(p), func(s provenSigner) bool { return s.By == p.Outcome.By && s.Fingerprint == fingerprint })
}

func readProof(env *environment, name string) ([]byte, error) {
	if name == "-" {
		return terminal.Read(env.stdin, "the proof", proof.MaxSize)
	}
	f, err := os.Open(name)
	if err != nil {
		return nil, parley.Refuse(parley.InvalidArgument, "cannot read %s: %v", terminal.Visible(name), terminal.Reason(err))
	}
	defer f.Close() //nolint:errcheck // only read from
	return terminal.Read(f, "the proof", proof.MaxSize)
}

// provenMessage returns the form of a proof as a message, to be shown as those of an inbox are.
func provenMessage(p *proof.Proof) (m view.Message, err error) {
	name := func(id capabilities.ID) string { return p.Names[id.String()] }
	m = view.Message{
		Type: string(p.Kind), MessageID: p.Form, From: p.From, FromName: name(p.From), To: p.To, ToName: name(p.To), Date: p.Asked,
		Outcome: &view.Outcome{
			Status: view.FormStatus(p.Outcome.Status), Form: p.Form, By: p.Outcome.By, ByName: name(p.Outcome.By), At: p.Outcome.At, Note: p.Outcome.Reason, Allowed: p.Outcome.Allowed,
		},
	}
	if m.Type == "" {
		m.Type = "form"
	}
	if p.Outcome.Values != nil {
		var o view.Outcome // which reads values with secrets that are masked
		if err := json.Unmarshal(fmt.Appendf(nil, `{"values":%s}`, p.Outcome.Values), &o); err != nil {
			return m, err
		}
		m.Outcome.Values = o.Values
	}
	q, err := p.Reading()
	if err != nil || q == nil {
		return m, err
	}
	m.Title, m.Description, m.Fields, m.Permission = q.Title, q.Description, q.Fields, q.Permission
	for _, f := range q.Fields {
		m.Outcome.Order = append(m.Outcome.Order, f.Name)
	}
	if q.Permission != nil {
		m.Title, m.Description, m.Folder, m.Digest = q.Permission.Tool, q.Permission.Input, q.Permission.Folder, q.Permission.Digest()
	}
	return m, nil
}

// provenText says what a proof proves, in words. All of it comes from a file that anybody may have made.
func provenText(p *proof.Proof, m view.Message, known bool, s terminal.Screen) string {
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	party := func(id capabilities.ID) string {
		if id.IsZero() {
			return "nobody"
		}
		if name := p.Names[id.String()]; name != "" {
			return terminal.Quoted(name) + " (" + id.ULID.String() + ")"
		}
		return id.String()
	}
	at := func(t capabilities.Time) string { return s.Moment(t.Std(), t.String()) }
	if known {
		line("%s of node %s, made %s", s.Paint(terminal.Right, "valid proof"), p.Node, at(p.Made))
	} else {
		line("%s node %s, made %s", s.Paint(terminal.Wrong, "not proven: it was held against no key, and says that it is of"), p.Node, at(p.Made))
	}
	line("form:     %s", p.Form)
	line("asked:    %s, by %s, of %s", at(p.Asked), party(p.From), party(p.To))
	shown := "shown:    only the digest is told"
	if p.Question != nil {
		shown = "shown:"
	}
	line("%s", shown)
	if p.Question != nil {
		lines := show.Lines(m)
		if m.Permission != nil {
			line("   tool:  %s", terminal.Visible(m.Permission.Tool))
			lines = show.CallLines(m)
		}
		if text := show.Preview(lines, s, 0, ""); text != "" {
			line("%s", text)
		}
	}
	line("digest:   %s", p.Digest)
	for _, v := range p.Votes {
		who := party(v.By)
		if !v.Person.IsZero() {
			who += ", by " + party(v.Person)
		}
		said := ""
		if v.Note != "" {
			said = ": " + terminal.Visible(v.Note)
		}
		line("vote:     %s, by %s, %s%s", terminal.Visible(string(v.Outcome)), who, at(v.At), said)
	}
	words := terminal.Visible(p.Outcome.Status)
	if sign, decision := show.Decision(m, s); sign != "" && p.Question != nil {
		words = sign + " " + decision
	} else if p.Outcome.Decision != "" {
		words = terminal.Visible(p.Outcome.Decision)
		if p.Outcome.Allowed {
			words += ", allowed"
		}
	}
	if p.Outcome.Reason != "" && !strings.Contains(words, terminal.Visible(p.Outcome.Reason)) {
		words += " · " + terminal.Visible(p.Outcome.Reason)
	}
	line("decision: %s", words)
	line("by:       %s, %s", party(p.Outcome.By), at(p.Outcome.At))
	for _, by := range signersOf(p) {
		line("passkey:  signed by %s on %s, with the key %s", party(by.By), terminal.Visible(by.Origin), by.Fingerprint)
	}
	if values, ok := m.Outcome.Values.AsRecord(); ok && m.Permission == nil && p.Outcome.Decision == "" {
		for _, n := range slices.Sorted(maps.Keys(values)) {
			line("   %s: %s", terminal.Visible(n), terminal.Visible(values[n].Text()))
		}
	}
	if p.Outcome.Withheld {
		line("   the answer was told to its asker alone")
	}
	for _, e := range p.Events {
		in := "by the node's word"
		if e.Shown {
			in = "as the proof shows"
		}
		line("log:      commit %d has %s, %s", e.Commit, terminal.Visible(e.Type), in)
	}
	fmt.Fprintf(&b, "log end:  commit %s", p.Head)
	return b.String()
}
