package web

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"parley"
	"parley/actors/view"
	"parley/capabilities"
	"parley/gateway/api"
	"parley/gateway/sanitize"
)

// AgentsPath, with a name behind it, is the address of an agent's own page.
const AgentsPath = "/agents/"

// agentPage is the data of an agent's page. Of the parts, those of its tab are set.
type agentPage struct {
	Name   string // "" is the reader
	ID     capabilities.ID
	Tab    string
	Wrong  string // why the node refused what was sent
	Text   string // of the message that was refused, or that the reader has begun
	Draft  string // when the begun one was saved; "" if there is none
	Key    string // of the next message, so that it is sent once
	MayAct bool   // the session may revoke and remove
	MayEnd bool   // the session may end rules too: the reader is the node's host
	MayAsk bool   // the session may send messages and stop runs

	MayAnswer bool       // the session may set an absence
	Absence   *view.Away // present or to come; nil for none

	Attention *view.Attention // of a coding agent: how mail reaches its sessions; nil for any other agent

	Activity activity
	About    about
	Reviewer reviewer       // of the policy of review; of the zero ID for another
	Rules    []view.Rule    // oldest first
	Mandates []mandate      // those that last first
	Proposed []proposal     // rules that follow from what was decided
	Names    []namedValue   // sorted
	Grants   []view.Granted // newest first
	Writers  []writer
	Log      logPart
	Standing
}

// The tabs of an agent's page. The first one is shown without a "tab" in the address.
const (
	activityTab = "activity"
	rulesTab    = "rules"
	accessTab   = "access"
	eventsTab   = "events"
)

// tab is a link to a part of an agent's page.
type tab struct{ Name, Title, Address string }

// Tabs returns the tabs of the page.
func (d agentPage) Tabs() []tab {
	return []tab{
		{activityTab, "Activity", d.Page()}, {rulesTab, "Rules", d.In(rulesTab)}, {accessTab, "Access", d.In(accessTab)}, {eventsTab, "Events", d.In(eventsTab)},
	}
}

// In returns the address of a tab.
func (d agentPage) In(tab string) string { return d.Page() + "?tab=" + tab }

// MayStop reports whether the reader may stop the agent, and MayStart whether it may have it go on.
func (d agentPage) MayStop() bool  { return d.MayAsk && d.Stops() }
func (d agentPage) MayStart() bool { return d.MayAsk && d.Starts() }

// State returns the state of the agent.
func (d agentPage) State() agentState { return agentState{d.AgentStatus.State} }

// PolicyText returns the agent's policy in words.
func (d agentPage) PolicyText() string { return policyText(d.Policy) }

// policyText returns a policy in words.
func policyText(policy string) string {
	switch policy {
	case "always":
		return "Asks about every call"
	case "never":
		return "Asks about no call, and denies those of a rule"
	case "deny":
		return "When no rule applies: deny"
	case "review":
		return "When no rule applies: a reviewer, then you"
	}
	return "When no rule applies: ask"
}

// writer is an agent that may write to the agent, and why.
type writer struct {
	party
	Why   string
	Since capabilities.Time
}

// logPart is a part of an agent's log.
type logPart struct {
	Events []loggedEvent // newest first
	Older  uint64        // there is more before this version; 0 if there is none
	Newest bool          // it is the end of the log

	Missing []view.MissingEvents // events of the part that are in the archive, in segments elsewhere
}

// namedValue is a value under one of the agent's names.
type namedValue struct{ Name, Value string }

// Special reports whether the name is built in, and cannot be removed.
func (n namedValue) Special() bool { return strings.HasPrefix(n.Name, "@") }

// loggedEvent is an event of the agent's log.
type loggedEvent struct {
	view.Entry
	Text string // the event as JSON
	Cut  int    // number of characters left out
}

// self is the name of the agent that is signed in, in the address of its own page.
const self = "SELF"

// AgentPath returns the address of the page of an agent by its name; "" is the agent that is signed in.
func AgentPath(name string) string {
	if name == "" {
		name = self
	}
	return AgentsPath + url.PathEscape(name)
}

// facetLimits returns in words what a reference of a kind and a facet permits; "" if that is all that an agent may be used for.
func facetLimits(kind capabilities.Kind, f capabilities.Facet) string {
	words := f.Words(kind, readable)
	if !kind.IsResource() {
		words = strings.TrimPrefix(words, "all")
	}
	if words == "" || strings.HasPrefix(words, ", ") {
		return words
	}
	return ", " + words
}

// Limits returns in words what a grant gives, without its end.
func (d agentPage) Limits(g view.Granted) string {
	f := g.Facet
	f.Until = 0
	return facetLimits(g.Kind, f)
}

// Page returns the address of the agent's page.
func (d agentPage) Page() string { return AgentPath(d.Name) }

// Inbox returns the address of the agent's mail.
func (d agentPage) Inbox() string {
	if d.Name == "" {
		return "/"
	}
	return "/?" + url.Values{"as": {d.Name}}.Encode()
}

// Bounds of the parts of an agent's page.
const (
	newestEvents = 100   // of the log, shown at once
	shownGrants  = 200   // the newest
	maxPayload   = 4_000 // characters of an event
)

// agentRequest is a request for the page of an agent.
type agentRequest struct {
	*page
	shown api.Agent // whose page it is
	data  agentPage
}

// serve shows the page of an agent, or does what its plain HTML form asks for.
func (p *agentRequest) serve() error {
	isPost := p.r.Method == http.MethodPost
	if !isPost {
		if err := p.readsOnly(); err != nil {
			return err
		}
	}
	name := strings.TrimPrefix(p.r.URL.Path, AgentsPath)
	agent, err := p.agentOf(name)
	if err != nil {
		return err
	}
	may := func(s api.Scope) bool { return p.principal.May(pageOperation(s)) == nil }
	p.shown, p.data = agent, agentPage{Name: name, ID: agent.ID(), Tab: p.r.URL.Query().Get("tab"), Key: rand.Text(), MayAct: may(api.ScopeAdmin), MayAsk: may(api.ScopeAsk), MayAnswer: may(api.ScopeAnswer)}
	d := &p.data
	d.MayEnd = d.MayAct && p.principal.IsHost()
	if d.Tab == "" {
		d.Tab = activityTab
	}
	if agent.ID() == p.principal.ID() {
		d.Name = ""
	}
	status := http.StatusOK
	if isPost {
		err := p.post()
		if err == nil {
			back := p.r.URL.RequestURI()
			switch p.r.PostForm.Get("from") {
			case "access":
				back = AccessPath
			case "agents":
				back = "/agents"
			}
			http.Redirect(p.w, p.r, p.base+back, http.StatusSeeOther)
			return nil
		}
		if p.r.Header.Get("Accept") == "application/json" { // of the page's script, which may sign what is refused
			return err
		}
		shown := api.Shown(err)
		d.Wrong, status = shown.Message, api.HTTPStatus(shown.Code)
	}
	if err := p.fill(); err != nil {
		return err
	}
	title := "You"
	if d.Name != "" {
		title = sanitize.Line(d.Name)
	}
	return p.show(status, "agent.html", layout{Title: title, Main: *d})
}

// post performs the operation of a plain HTML form on an agent's page.
func (p *agentRequest) post() error {
	d := &p.data
	p.r.Body = http.MaxBytesReader(p.w, p.r.Body, maxPlainForm)
	if err := p.r.ParseForm(); err != nil {
		return parley.Refuse(parley.InvalidArgument, "the form cannot be read")
	}
	sent, as, id := p.r.PostForm, api.Acting{As: d.Name}, d.ID.String()
	signed, err := signatureIn(sent)
	if err != nil {
		return err
	}
	var act api.Act
	switch {
	case sent.Has("stop"):
		act = api.HoldAgent.With(api.HoldAgentRequest{AgentID: id, Hold: true})
	case sent.Has("start"):
		act = api.HoldAgent.With(api.HoldAgentRequest{AgentID: id})
	case sent.Has("set-policy"):
		policy, err := policyOf(d.ID, sent)
		if err != nil {
			return err
		}
		policy.Passkey = signed
		act = api.SetPolicy.With(policy)
	case sent.Has("end"):
		rule, err := capabilities.ParseID(sent.Get("end"))
		if err != nil {
			return parley.Refuse(parley.InvalidArgument, "%.40q is no rule", sent.Get("end"))
		}
		act = api.RemoveRule.With(api.RemoveRuleRequest{Agent: d.Name, Rule: rule})
	case sent.Has("pause-all"), sent.Has("resume-all"):
		rules, err := p.shown.Rules().List(p.ctx())
		if err != nil {
			return err
		}
		return pauseRules(p.page, d.Name, rules, sent.Has("resume-all"), &signed)
	case sent.Has("pause"), sent.Has("resume"):
		rule, err := capabilities.ParseID(cmp.Or(sent.Get("pause"), sent.Get("resume")))
		if err != nil {
			return parley.Refuse(parley.InvalidArgument, "%.40q is no rule", cmp.Or(sent.Get("pause"), sent.Get("resume")))
		}
		act = api.PauseRule.With(api.PauseRuleRequest{Agent: d.Name, Rule: rule, Resume: sent.Has("resume"), Passkey: signed})
	case sent.Has("mandate"):
		mandate, err := capabilities.ParseID(sent.Get("mandate"))
		if err != nil {
			return parley.Refuse(parley.InvalidArgument, "%.40q is no mandate", sent.Get("mandate"))
		}
		act = api.EndMandate.With(api.MandateRequest{Agent: d.Name, Mandate: mandate})
	case sent.Has("limit"):
		limit, err := limitOf(d.Name, sent)
		if err != nil {
			return err
		}
		act = api.LimitRule.With(limit)
	case sent.Has("add"):
		added, err := proposalOf(d.Name, sent)
		if err != nil {
			return err
		}
		added.Passkey = signed
		act = api.MakeRule.With(added)
	case sent.Has("away"), sent.Has("back"):
		away, err := absenceOf(as, sent)
		if err != nil {
			return err
		}
		act = api.SetAway.With(away)
	case sent.Has("attention"):
		act = api.SetAttention.With(attentionChange(as, sent))
	case sent.Has("revoke"):
		act = api.Revoke.With(api.RevokeRequest{Acting: as, Grant: sent.Get("revoke")})
	case sent.Has("remove"):
		act = api.RemoveName.With(api.NameRequest{Acting: as, Name: sent.Get("remove")})
	default:
		d.Text, d.Key = sent.Get("text"), sent.Get("key")
		got, err := api.SendAgentMessage.Do(p.ctx(), p, api.SendAgentMessageRequest{AgentID: id, Text: d.Text, MessageID: d.Key})
		if err == nil && got.Error != nil {
			err = got.Error
		}
		return err
	}
	return act(p.ctx(), p)
}

// signatureIn returns what a passkey has signed of a plain form; nil if it has nothing.
func signatureIn(sent url.Values) (s *parley.PasskeySignature, err error) {
	if text := sent.Get("passkey"); text != "" {
		if err := json.Unmarshal([]byte(text), &s); err != nil {
			return nil, parley.Refuse(parley.InvalidArgument, "what a passkey has signed cannot be read")
		}
	}
	return s, nil
}

// pauseRules pauses rules of an agent, or has them decide again. What was signed is of the first of them, and good once: what is refused
// after that is signed in its turn.
func pauseRules(p *page, agent string, rules []view.Rule, resume bool, signed **parley.PasskeySignature) error {
	for _, r := range rules {
		if r.Paused != resume {
			continue
		}
		if _, err := api.PauseRule.Do(p.ctx(), p, api.PauseRuleRequest{Agent: agent, Rule: r.Rule, Resume: resume, Passkey: *signed}); err != nil {
			return err
		}
		*signed = nil
	}
	return nil
}

// maxLimit bounds the time after which the page has a rule end.
const maxLimit = 366 * 24 * time.Hour

// limitOf returns the request for the end of a rule that the page's form names.
func limitOf(agent string, sent url.Values) (r api.LimitRuleRequest, err error) {
	rule := sent.Get("limit")
	if r.Rule, err = capabilities.ParseID(rule); err != nil {
		return r, parley.Refuse(parley.InvalidArgument, "%.40q is no rule", rule)
	}
	r.Agent = agent
	r.Until, err = endAfter(sent.Get("until/" + rule))
	return r, err
}

// endAfter returns the end of a rule that ends after a time.
func endAfter(text string) (capabilities.Time, error) {
	after, err := time.ParseDuration(text)
	if err != nil || after <= 0 || after > maxLimit {
		return 0, parley.Refuse(parley.InvalidArgument, "%.40q is no time after which a rule ends", text)
	}
	return capabilities.At(time.Now().Add(after)), nil
}

// fill looks up the part of an agent's page that its tab shows.
func (p *agentRequest) fill() (err error) {
	ctx, d, agent := p.ctx(), &p.data, p.shown
	if d.Standing, err = standingOf(ctx, agent); err != nil {
		return err
	}
	d.Standing.tell(askersOf(p.page))
	if d.Absence, err = absenceNow(p.page, api.Acting{As: d.Name}); err != nil {
		return err
	}
	if d.Attention, err = attentionOf(p.page, d); err != nil {
		return err
	}
	if err = p.reviewer(); err != nil {
		return err
	}
	before := p.r.URL.Query().Get("before")
	switch d.Tab {
	case activityTab:
		if d.Activity, err = p.activityOf(local{d.Name, agent}, d.AgentStatus, before); err != nil {
			return err
		}
		if err = d.Activity.only(p.r.URL.Query().Get("show")); err != nil {
			return err
		}
		if d.MayAsk && d.Wrong == "" {
			p.fillDraft()
		}
		err = p.about()
	case rulesTab:
		if d.Rules, err = agent.Rules().List(ctx); err == nil {
			d.Mandates, err = mandatesOf(ctx, agent)
		}
		d.Proposed = p.proposed()
	case accessTab:
		err = p.access()
	case eventsTab:
		d.Log, err = history(ctx, agent, before)
	default:
		err = parley.Refuse(parley.InvalidArgument, "an agent's page has no tab %.40q", d.Tab)
	}
	return err
}

// fillDraft fetches the message to the agent that the reader has begun. Without it the page is shown as well.
func (p *agentRequest) fillDraft() {
	d := &p.data
	if draft, err := api.FetchDraft.Do(p.ctx(), p, api.FetchDraftRequest{To: d.ID.String()}); err == nil && draft.Text != "" {
		d.Text, d.Draft = draft.Text, draft.SavedAt.String()
	}
}

// access looks up what an agent holds, what it gave, and who may write to it.
func (p *agentRequest) access() (err error) {
	ctx, d, agent := p.ctx(), &p.data, p.shown
	if d.Names, err = namedValues(ctx, agent); err != nil {
		return err
	}
	if d.Grants, err = agent.Names().Grants(ctx, view.GrantFilter{Newest: true, Most: shownGrants}); err != nil {
		return err
	}
	return p.writers()
}

// writers looks up who may write to the agent.
func (p *agentRequest) writers() error {
	ctx, d, agent := p.ctx(), &p.data, p.shown
	if d.Host != d.ID {
		d.Writers = append(d.Writers, writer{party: p.partyOf(d.Host), Why: "its host"})
	}
	if d.Maker != d.Host && d.Maker != d.ID && !d.Maker.IsZero() {
		d.Writers = append(d.Writers, writer{party: p.partyOf(d.Maker), Why: "made it"})
	}
	givers := []api.Agent{agent}
	if agent.ID() != p.agent.ID() {
		givers = append(givers, p.page.agent)
	}
	for _, giver := range givers {
		given, err := giver.Names().Grants(ctx, view.GrantFilter{Newest: true, Target: d.ID, Live: true, Most: shownGrants})
		if err != nil {
			return err
		}
		for _, g := range given {
			if g.Kind == capabilities.KindAgent && len(d.Writers) < shownGrants {
				to := partyOf(g.To, g.ToName)
				if g.To == p.principal.ID() { // the giver has a name of its own for the reader
					to = p.partyOf(g.To)
				}
				d.Writers = append(d.Writers, writer{party: to, Why: "got a reference" + facetLimits(g.Kind, g.Facet), Since: g.At})
			}
		}
	}
	return nil
}

// partyOf returns a party by the name that the reader has for it.
func (p *page) partyOf(id capabilities.ID) party {
	if id == p.principal.ID() {
		return party{Name: "you", ID: id.String(), Own: true}
	}
	return partyOf(id, heldNames(p.ctx(), p.agent)[id])
}

// namedValues returns the values that an agent holds, by name.
func namedValues(ctx context.Context, agent api.Agent) ([]namedValue, error) {
	names, err := agent.Names().List(ctx, "", "", maxNamed)
	if err != nil {
		return nil, err
	}
	inWords := func(r capabilities.Ref) string { return unnamed(r) + facetLimits(r.Kind, r.Facet) }
	var list []namedValue
	for _, name := range names {
		value, err := agent.Names().Show(ctx, name, false)
		if parley.CodeOf(err) == parley.NotPermitted {
			list = append(list, namedValue{Name: name, Value: "revoked"})
			continue
		}
		if err != nil {
			continue // it was removed meanwhile, or is no value: the mail
		}
		list = append(list, namedValue{Name: name, Value: view.ShowValue(value, nil, inWords)})
	}
	return list, nil
}

// history returns the end of an agent's log or, if before is not "", the part before that version.
func history(ctx context.Context, agent api.Agent, before string) (logPart, error) {
	end, err := agent.Version(ctx)
	if err != nil {
		return logPart{}, err
	}
	h := logPart{Newest: true}
	if before != "" {
		version, err := strconv.ParseUint(before, 10, 64)
		if err != nil || version == 0 {
			return h, parley.Refuse(parley.InvalidArgument, "%.40q is no version", before)
		}
		end, h.Newest = min(end, version-1), false
	}
	first := end - min(end, newestEvents)
	if first > 0 {
		h.Older = first + 1
	}
	l, err := agent.Log(ctx, first, int(end-first))
	if err != nil {
		return h, err
	}
	h.Missing = l.Missing
	h.Events, err = logged(l.Entries)
	return h, err
}

// logged returns events as JSON, the last first.
func logged(entries []view.Entry) ([]loggedEvent, error) {
	list := make([]loggedEvent, 0, len(entries))
	for _, e := range slices.Backward(entries) {
		raw, err := json.MarshalIndent(e.Payload, "", "  ")
		if err != nil {
			return nil, err
		}
		text := []rune(string(raw))
		whole := len(text)
		text = text[:min(whole, maxPayload)]
		list = append(list, loggedEvent{Entry: e, Text: string(text), Cut: whole - len(text)})
	}
	return list, nil
}
