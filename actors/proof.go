package actors

import (
	"context"
	"slices"

	"parley"
	"parley/actors/keys"
	"parley/actors/view"
	"parley/capabilities"
	"parley/events"
	"parley/mailbox/proof"
	"parley/persistence"
)

// Prove returns a proof of what was decided on a form that the agent asked, received, or may look into as the host of who asked it.
// It is by the events of the form's home where the agent may read them, else by those of its own copy. With digestOnly it does not
// tell what was shown. It refuses with INVALID_ARGUMENT a form that is open.
func (m Mail) Prove(ctx context.Context, ref capabilities.FormRef, digestOnly bool) (view.Proof, error) {
	a, n := m.agent, m.agent.node
	found, err := read(ctx, a, findProven{ref})
	if err != nil {
		return view.Proof{}, err
	}
	home := &Agent{node: n, id: found.from}
	if home.id != a.id && home.id.Node == n.id && a.Agents().MayLookInto(ctx, home) == nil {
		if found, err = read(ctx, home, findProven{capabilities.FormID(found.form)}); err != nil {
			return view.Proof{}, err
		}
		a = home
	}
	logged, err := n.journal.EventsAt(ctx, a.id, found.versions)
	if err != nil {
		return view.Proof{}, err
	}
	var evs []proof.Placed
	var versions []uint64
	for _, e := range logged {
		if proof.IsOf(e.Event, found.form) {
			evs, versions = append(evs, proof.Placed{Version: e.Version, Recorded: e.Recorded}), append(versions, e.Version)
		}
	}
	p, err := proof.Tell(a.id, evs)
	if err != nil {
		return view.Proof{}, err
	}
	if digestOnly {
		p.Question = nil
	}
	p.Head, err = n.journal.Frames(ctx, a.id, versions, func(frame []byte) error {
		return p.Add(frame, evs, func(s *events.Section) bool { return mayProve(s, a.id, n.host, found.form, digestOnly) })
	})
	if err != nil {
		return view.Proof{}, err
	}
	if p.Names, err = namesIn(ctx, m.agent, p); err != nil {
		return view.Proof{}, err
	}
	p.Made = n.now()
	key, err := keys.Load(n.o.Folder)
	if err != nil {
		return view.Proof{}, err
	}
	file, err := p.Encode(key.Sign)
	if err != nil {
		return view.Proof{}, err
	}
	if _, err := proof.Read(file, n.id); err != nil { // a proof that would not verify is worth nothing
		n.log.Error("a proof does not verify", "form", found.form.String(), "error", err)
		return view.Proof{}, parley.Refuse(parley.Internal, "the proof of form %s does not verify", found.form)
	}
	signed := slices.ContainsFunc(p.Signed, func(e events.DecisionSigned) bool { return e.By == p.Outcome.By })
	return view.Proof{Form: found.form, Proof: string(file), Signed: signed}, nil
}

// mayProve reports whether a proof may show a section whole: nothing in it is of anything but the form, the status of the agent that is
// stored with it included.
func mayProve(s *events.Section, self, host, form capabilities.ID, digestOnly bool) bool {
	if !proof.MayShow(s, form) {
		return false
	}
	if digestOnly {
		evs, err := s.Events()
		asks := func(r events.Recorded) bool {
			switch r.Event.(type) {
			case *events.FormRequested, *events.FormAmended:
				return true
			}
			return false
		}
		if err != nil || slices.ContainsFunc(evs, asks) {
			return false
		}
	}
	if s.Note == "" {
		return true
	}
	status, err := statusByNote(self, host, persistence.Mailbox{Note: s.Note})
	if err != nil || len(status.Cut) > 0 || status.More > 0 || status.Error != "" || len(status.Wrap) > 0 {
		return false
	}
	return !slices.ContainsFunc(status.Pending, func(p view.PendingPermission) bool { return p.Form != form || digestOnly })
}

// namesIn returns what an agent calls the agents of a proof.
func namesIn(ctx context.Context, a *Agent, p *proof.Proof) (map[string]string, error) {
	ids := []capabilities.ID{p.From, p.To, p.Outcome.By}
	for _, v := range p.Votes {
		ids = append(ids, v.By, v.Person)
	}
	return read(ctx, a, queryNames{ids})
}

// queryNames returns the agent's names for others, by the texts of their IDs. Those without a name are left out.
type queryNames struct{ ids []capabilities.ID }

func (m queryNames) handle(b *mailboxActor) (map[string]string, error) {
	all := map[string]string{}
	for _, id := range m.ids {
		if id.IsZero() {
			continue
		}
		name, err := b.state.Names.Of(id)
		if err != nil {
			return nil, err
		}
		if name != "" {
			all[id.String()] = name
		}
	}
	return all, nil
}

// findProven finds the events that a form consists of.
type findProven struct{ ref capabilities.FormRef }

// proven is a form with the versions of its events, all of which are durable.
type proven struct {
	form, from capabilities.ID
	versions   []uint64
}

func (m findProven) handle(b *mailboxActor) (p proven, err error) {
	msg, err := b.state.Mail.Find(m.ref)
	switch {
	case err != nil:
		return p, err
	case msg.Form == nil:
		return p, parley.Refuse(parley.NotAForm, "message %d is not a form", msg.Number).WithHint("a proof is of a decision on a form")
	case msg.Form.IsOpen():
		return p, parley.Refuse(parley.InvalidArgument, "form %d is open: there is no decision to prove yet", msg.Number).WithHint("parley await %s waits for it", msg.Form.ID)
	}
	versions, err := b.state.Mail.Index.VersionsOf(msg.Number)
	return proven{form: msg.Form.ID, from: msg.Form.From, versions: versions}, err
}
