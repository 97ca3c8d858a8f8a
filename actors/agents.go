package actors

import (
	"context"
	"iter"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/oklog/ulid/v2"

	"parley"
	"parley/actors/view"
	"parley/capabilities"
	"parley/events"
	"parley/mailbox"
	"parley/persistence"
)

// visibility is the set of the node's agents that an agent sees, with its names for them.
type visibility struct {
	everything bool // the node's host sees all
	names      map[capabilities.ID]string
}

func (s visibility) includes(id capabilities.ID) bool {
	_, named := s.names[id]
	return s.everything || named
}

// visibility returns the agents that the agent sees: itself and those that it holds. The node's host sees all. Its names
// are looked up for some of them, since it may have very many.
func (as Agents) visibility(ctx context.Context, some ...capabilities.ID) (visibility, error) {
	host := as.agent.IsHost()
	names, err := queryListing(ctx, as.agent, func(s *mailbox.State, now capabilities.Time) (map[capabilities.ID]string, error) {
		if !host {
			return s.Namespace().Agents(now)
		}
		names := make(map[capabilities.ID]string, len(some)+1)
		for _, id := range some {
			name, err := s.Namespace().NameOf(id, now)
			if err != nil {
				return nil, err
			}
			if name != "" {
				names[id] = name
			}
		}
		names[as.agent.id], _ = s.Names.Of(as.agent.id) // HOST
		return names, nil
	})
	if err != nil {
		return visibility{}, err
	}
	if _, named := names[as.agent.id]; !named {
		names[as.agent.id] = "SELF"
	}
	if !host {
		if err := withSessions(ctx, as.agent, names); err != nil {
			return visibility{}, err
		}
	}
	return visibility{everything: host, names: names}, nil
}

// idsOf returns the IDs of agents.
func idsOf(list []view.AgentStatus) []capabilities.ID {
	ids := make([]capabilities.ID, len(list))
	for i := range list {
		ids[i] = list[i].ID
	}
	return ids
}

// List returns the agents of the node that the agent sees, oldest first.
func (as Agents) List(ctx context.Context, f view.AgentFilter) ([]view.AgentStatus, error) {
	return as.Page(ctx, f, "", math.MaxInt)
}

// Page is List for at most limit agents whose IDs, as text, are behind a key. Topics are listed where the filter names their label.
func (as Agents) Page(ctx context.Context, f view.AgentFilter, after string, limit int) ([]view.AgentStatus, error) {
	seen, err := visibility{everything: as.agent.IsHost()}, error(nil)
	if !seen.everything {
		if seen, err = as.visibility(ctx); err != nil {
			return nil, err
		}
	}
	list := []view.AgentStatus{}
	for id, m := range as.behind(seen, afterKey(after)) {
		if len(list) == limit {
			break
		}
		if !as.agent.node.directory.mayMatch(f, id, m.Note) || after != "" && id.String() <= after {
			continue
		}
		s, err := as.agent.node.directory.status(ctx, id, m)
		if err != nil {
			return nil, err
		}
		if f.Matches(s) && isListed(s) && (!s.Topic || f.Labels[LabelTopic] == isTopic) {
			list = append(list, s)
		}
	}
	if seen.everything {
		if seen, err = as.visibility(ctx, idsOf(list)...); err != nil {
			return nil, err
		}
	}
	for i, s := range list {
		list[i] = present(as.agent.node, s).For(as.agent.id, seen.names[s.ID])
	}
	return list, nil
}

// isListed reports whether a status is that of an agent. That of a resource is listed only while it asks about uses of it.
func isListed(s view.AgentStatus) bool {
	return s.Kind != string(events.ResourceKind) || len(s.Pending) > 0
}

// behind returns the index entries of the node's agents in a visibility whose IDs are behind a ULID, oldest first.
func (as Agents) behind(seen visibility, after ulid.ULID) iter.Seq2[capabilities.ID, persistence.Mailbox] {
	j := as.agent.node.journal
	if seen.everything {
		return j.MailboxesAfter(after)
	}
	return func(yield func(capabilities.ID, persistence.Mailbox) bool) {
		for _, id := range slices.SortedFunc(maps.Keys(seen.names), capabilities.ID.Compare) {
			m, there := j.Mailbox(id)
			if there && id.ULID.Compare(after) > 0 && !yield(id, m) {
				return
			}
		}
	}
}

// AgentWatch watches the agents that an agent sees and a filter matches.
type AgentWatch struct {
	as     Agents
	filter view.AgentFilter
	only   capabilities.ID
	watch  *watch
	told   map[capabilities.ID]told // what was reported of each agent that the filter still matches; nil before the first
	forget func() bool
}

// told is what was reported of an agent. One that is put aside has an error in the version that it had.
type told struct {
	version uint64
	problem string
}

// Watch watches the agents that the agent sees and the filter matches. If only is not zero, it is the one agent that is
// watched. It calls changed when there is something new after the last Next, and when the node closes. Changed must not
// block. The caller stops the watch.
func (as Agents) Watch(f view.AgentFilter, only capabilities.ID, changed func()) *AgentWatch {
	n := as.agent.node
	return &AgentWatch{as: as, filter: f, only: only, watch: n.directory.watch(changed), forget: context.AfterFunc(n.life, changed)}
}

// Stop ends the watch.
func (w *AgentWatch) Stop() {
	w.forget()
	w.as.agent.node.directory.unwatch(w.watch)
}

// Next returns the agents that have changed since the last call: at first all. An agent that the filter no longer matches
// is returned once more, as gone. It does not wait.
func (w *AgentWatch) Next(ctx context.Context) ([]view.AgentChange, error) {
	n := w.as.agent.node
	if n.life.Err() != nil {
		return nil, errClosing()
	}
	var news []view.AgentStatus
	var err error
	if w.told == nil {
		news, err = n.directory.all(ctx)
	} else {
		news, err = n.directory.news(ctx, w.watch)
	}
	if err != nil || len(news) == 0 && w.told != nil {
		return nil, err
	}
	seen, err := w.as.visibility(ctx, idsOf(news)...)
	if err != nil {
		return nil, err
	}
	if w.told == nil {
		w.told = map[capabilities.ID]told{}
	}
	var changes []view.AgentChange
	for _, s := range news {
		if !w.only.IsZero() && s.ID != w.only || !seen.includes(s.ID) {
			continue
		}
		picked, before := w.filter.Matches(s) && isListed(s), w.told[s.ID]
		if !picked && before == (told{}) || s.Version < before.version || before == (told{s.Version, s.Error}) {
			continue
		}
		w.told[s.ID] = told{s.Version, s.Error}
		if !picked {
			delete(w.told, s.ID)
		}
		changes = append(changes, view.AgentChange{Status: present(n, s).For(w.as.agent.id, seen.names[s.ID]), Gone: !picked})
	}
	return changes, nil
}

// maxOffered is the number of candidates in the error for an ambiguous name.
const maxOffered = 5

// Find returns an agent of the node by an ID, a locator or one of the caller's names. The prefix of an ID, its last eight
// characters and a whole title are accepted too, if they match one agent. It refuses with AGENT_NOT_FOUND, AMBIGUOUS, and NOT_PERMITTED for an
// agent of another node.
func (as Agents) Find(ctx context.Context, ref string) (*Agent, error) {
	id, err := as.find(ctx, ref)
	if err != nil {
		return nil, err
	}
	if id.Node != as.agent.node.id {
		return nil, parley.Refuse(parley.NotPermitted, "%.200q is an agent of another node, which alone knows what it does", ref)
	}
	return &Agent{node: as.agent.node, id: id, by: as.agent.by}, nil
}

func (as Agents) find(ctx context.Context, ref string) (capabilities.ID, error) {
	if ref == "" {
		return capabilities.ID{}, parley.Refuse(parley.InvalidArgument, "which agent? give an ID, its beginning or last eight characters, a name or a title")
	}
	seen, err := as.visibility(ctx)
	if err != nil {
		return capabilities.ID{}, err
	}
	if id, ok := as.exactly(ref, seen); ok {
		return id, nil
	}
	v, err := as.agent.Names().Show(ctx, ref, false)
	switch {
	case parley.CodeOf(err) == parley.NotPermitted:
		return capabilities.ID{}, err // the reference was revoked
	case err == nil:
		if target, ok := v.AsRef(); ok && target.Kind == capabilities.KindAgent {
			return target.Target, as.checkHeld(ctx, ref, seen)
		}
	}
	for _, search := range []func(context.Context, string, visibility) ([]view.AgentStatus, error){as.beginning, as.ending, as.titled} {
		found, err := search(ctx, ref, seen)
		if err != nil {
			return capabilities.ID{}, err
		}
		if len(found) == 1 {
			return found[0].ID, nil
		}
		if len(found) > 1 {
			if seen, err = as.visibility(ctx, idsOf(found[:min(len(found), maxOffered)])...); err != nil {
				return capabilities.ID{}, err
			}
			return capabilities.ID{}, ambiguous(ref, found, seen)
		}
	}
	return capabilities.ID{}, parley.Refuse(parley.AgentNotFound, "no agent %.200q", ref).
		WithHint("parley ls lists the agents")
}

// checkHeld refuses with NOT_PERMITTED the path of an agent that is not held. The node's host sees all agents.
func (as Agents) checkHeld(ctx context.Context, path string, seen visibility) error {
	if seen.everything {
		return nil
	}
	_, err := query(ctx, as.agent, func(s *mailbox.State, now capabilities.Time) (none, error) {
		return none{}, s.Namespace().CheckHeld(path, now)
	})
	return err
}

// beginning returns the agents whose IDs begin with a text.
func (as Agents) beginning(ctx context.Context, text string, seen visibility) ([]view.AgentStatus, error) {
	text = strings.ToUpper(text)
	first, err := ulid.ParseStrict(text + strings.Repeat("0", max(0, ulid.EncodedSize-len(text))))
	if err != nil {
		return nil, nil
	}
	before := first // the ID in front of all that begin with the text
	for i := len(before) - 1; i >= 0; i-- {
		if before[i]--; before[i] != 0xff {
			break
		}
	}
	if first == (ulid.ULID{}) {
		before = first
	}
	var found []view.AgentStatus
	for id, m := range as.behind(seen, before) {
		if !strings.HasPrefix(id.ULID.String(), text) {
			break
		}
		s, err := as.agent.node.directory.status(ctx, id, m)
		if err != nil {
			return nil, err
		}
		found = append(found, s)
	}
	return found, nil
}

// endLength is the number of characters by which lists for people show the end of an ID. Agents that were made together have
// the same beginning.
const endLength = 8

// ending returns the agents whose IDs end with a text, as lists for people show it.
func (as Agents) ending(ctx context.Context, text string, seen visibility) ([]view.AgentStatus, error) {
	text = strings.ToUpper(strings.TrimPrefix(text, "…"))
	if len(text) != endLength {
		return nil, nil
	}
	var found []view.AgentStatus
	for id, m := range as.behind(seen, ulid.ULID{}) {
		if !strings.HasSuffix(id.ULID.String(), text) {
			continue
		}
		s, err := as.agent.node.directory.status(ctx, id, m)
		if err != nil {
			return nil, err
		}
		found = append(found, s)
	}
	return found, nil
}

// titled returns the agents with a title.
func (as Agents) titled(ctx context.Context, title string, seen visibility) ([]view.AgentStatus, error) {
	var found []view.AgentStatus
	for id, m := range as.behind(seen, ulid.ULID{}) {
		if known := m.Note != ""; known && !strings.Contains(m.Note, title) {
			continue
		}
		s, err := as.agent.node.directory.status(ctx, id, m)
		if err != nil {
			return nil, err
		}
		if s.Title == title {
			found = append(found, s)
		}
	}
	return found, nil
}

// exactly returns the agent of a whole ID, with or without its node, or of a locator.
func (as Agents) exactly(ref string, seen visibility) (capabilities.ID, bool) {
	id, err := capabilities.ParseID(ref)
	if capabilities.IsLocator(ref) {
		var l capabilities.Locator
		l, err = capabilities.ParseLocator(ref)
		id = l.ID
	} else if err != nil {
		id, err = capabilities.ParseLocalID(ref, as.agent.node.id)
	}
	if err != nil || !seen.includes(id) {
		return id, false
	}
	if id.Node != as.agent.node.id {
		return id, true
	}
	_, there := as.agent.node.journal.Mailbox(id)
	return id, there
}

func ambiguous(ref string, found []view.AgentStatus, seen visibility) error {
	words := make([]string, 0, maxOffered+1)
	for _, s := range found[:min(len(found), maxOffered)] {
		name := seen.names[s.ID]
		if name == "" {
			name = s.Title
		}
		words = append(words, strings.TrimSpace(s.ID.ULID.String()+" "+name))
	}
	if more := len(found) - maxOffered; more > 0 {
		words = append(words, "…")
	}
	return parley.Refuse(parley.Ambiguous, "%.200q could be any of %d agents: %s", ref, len(found), strings.Join(words, ", ")).
		WithHint("give more of the ID")
}

// Agents are the agents of the node as one of them sees and controls them.
type Agents struct{ agent *Agent }

// Agents returns the agents of the node as the agent sees and controls them.
func (a *Agent) Agents() Agents { return Agents{a} }

// SetAway has the forms that come from one time to another forwarded to a delegate, if there is one. No Until ends the
// absence.
func (a *Agent) SetAway(ctx context.Context, c mailbox.SetAway) (view.StandIns, error) {
	return call(ctx, a, setStandIns{c})
}

// SetMember adds a member to the agent as a group, or removes it.
func (a *Agent) SetMember(ctx context.Context, c mailbox.SetMember) (view.StandIns, error) {
	return call(ctx, a, setStandIns{c})
}

// StandIns returns the agents to which the agent's forms are forwarded as they come.
func (a *Agent) StandIns(ctx context.Context) (view.StandIns, error) {
	return read(ctx, a, setStandIns{})
}

// setStandIns decides on a command, if there is one, and returns the stand-ins.
type setStandIns struct{ command mailbox.Command }

func (m setStandIns) handle(b *mailboxActor) (view.StandIns, error) {
	if m.command != nil {
		if _, err := b.decide(m.command); err != nil {
			return view.StandIns{}, err
		}
	}
	v, s := b.viewer(), view.StandIns{Members: []view.Party{}}
	for _, id := range b.state.StandIns.Members() {
		s.Members = append(s.Members, view.Party{ID: id, Name: v.nameOf(id)})
	}
	if away, ok := b.state.StandIns.Away(b.node.clock()); ok {
		s.Away = &view.Away{From: away.From, Until: away.Until}
		if !away.Delegate.IsZero() {
			s.Away.To = &view.Party{ID: away.Delegate, Name: v.nameOf(away.Delegate)}
		}
	}
	return s, v.absent
}
