package web

import (
	"cmp"
	"math"
	"net/http"
	"strings"

	"parley"
	"parley/actors/view"
	"parley/capabilities"
	"parley/gateway/api"
)

// AccessPath is the address of the page of all that is allowed without asking.
const AccessPath = "/access"

// maxAccessRules bounds the rules that the page of rules and access shows; the pages of agents have the others.
const maxAccessRules = 500

// accessPage is the data of the page: the standing rules of all agents, and how each agent asks.
type accessPage struct {
	Agents []accessAgent
	Rules  int

	Mandates int  // that last
	More     bool // there are agents or rules that it does not show
	MayEnd   bool // the session may end rules
	Paused   int  // of the rules

	Owner   bool // the reader may see the devices that are told by push
	Devices []Device
	Tokens  []view.Token
}

// Pauses reports whether some rule decides, or may, of those that the page does not show. Resumes reports whether there are rules, and
// all that it shows are paused.
func (d accessPage) Pauses() bool  { return d.MayEnd && (d.Rules > d.Paused || d.More) }
func (d accessPage) Resumes() bool { return d.MayEnd && d.Rules > 0 && d.Rules == d.Paused }

// scopeWords returns what a token may do, in words.
func (d accessPage) ScopeWords(t view.Token) string { return strings.Join(t.Scopes, ", ") }

// accessAgent is an agent with its rules.
type accessAgent struct {
	Name, Shown string
	ID          capabilities.ID
	Policy      string
	Rules       []view.Rule
	Mandates    []view.Mandate // those that last
}

// policyGroup is the agents with a policy.
type policyGroup struct {
	Words  string
	Agents []accessAgent
}

// Policies returns the policies that agents have, each with these.
func (d accessPage) Policies() (all []policyGroup) {
	for _, policy := range policies {
		g := policyGroup{Words: policy.Label}
		for _, a := range d.Agents {
			if cmp.Or(a.Policy, "on-miss") == policy.Value {
				g.Agents = append(g.Agents, a)
			}
		}
		if len(g.Agents) > 0 {
			all = append(all, g)
		}
	}
	return all
}

// Page returns the address of the agent's own page.
func (a accessAgent) Page() string { return AgentPath(a.Name) }

// showAccess shows what is allowed without asking.
func showAccess(p *page) error {
	isPost := p.r.Method == http.MethodPost
	if !isPost {
		if err := p.readsOnly(); err != nil {
			return err
		}
	}
	d, err := readAccess(p, isPost)
	if err != nil {
		return err
	}
	if isPost {
		if err := d.change(p); err != nil {
			return err
		}
		http.Redirect(p.w, p.r, p.base+AccessPath, http.StatusSeeOther)
		return nil
	}
	if d.MayEnd {
		tokens, err := api.ListTokens.Do(p.ctx(), p, api.ListTokensRequest{})
		if err != nil {
			return err
		}
		d.Tokens = tokens.Tokens
	}
	if d.Owner = p.ownsDevices(); d.Owner {
		if d.Devices, err = devicesSeen(p, d.Tokens); err != nil {
			return err
		}
	}
	return p.show(http.StatusOK, "access.html", layout{Title: "Rules and access", Main: d})
}

// change does what the page's plain HTML form asks for: all rules pause or decide again, or a token ends.
func (d accessPage) change(p *page) error {
	p.r.Body = http.MaxBytesReader(p.w, p.r.Body, maxPlainForm)
	if err := p.r.ParseForm(); err != nil {
		return parley.Refuse(parley.InvalidArgument, "the form cannot be read")
	}
	sent := p.r.PostForm
	switch {
	case sent.Has("pause-all"), sent.Has("resume-all"):
		signed, err := signatureIn(sent)
		if err != nil {
			return err
		}
		for _, a := range d.Agents {
			if err := pauseRules(p, a.Name, a.Rules, sent.Has("resume-all"), &signed); err != nil {
				return err
			}
		}
		return nil
	case sent.Has("token"):
		token, err := capabilities.ParseID(sent.Get("token"))
		if err != nil {
			return parley.Refuse(parley.InvalidArgument, "%.40q is no token", sent.Get("token"))
		}
		_, err = api.RevokeToken.Do(p.ctx(), p, api.RevokeTokenRequest{Token: token})
		return err
	}
	return parley.Refuse(parley.InvalidArgument, "rules are paused, or a token is revoked")
}

// readAccess returns the rules of the reader and, for the node's host, of its agents: as many as the page shows, or all.
func readAccess(p *page, all bool) (accessPage, error) {
	d := accessPage{MayEnd: p.principal.IsHost() && p.principal.May(api.Operation{Name: "rules", Scope: api.ScopeAdmin}) == nil}
	most := maxLocals
	if all {
		most = math.MaxInt
	}
	who, err := p.site.localsUpTo(p.ctx(), p.principal, most)
	if err != nil {
		return d, err
	}
	d.More = !all && len(who) > maxLocals
	called := p.nameOf()
	for _, l := range who {
		if !all && d.Rules >= maxAccessRules {
			d.More = true
			break
		}
		status, err := l.agent.Status(p.ctx())
		if err != nil || status.Topic {
			continue // it is being made or removed, or asks about nothing
		}
		a := accessAgent{Name: l.name, Shown: called(l.agent.ID(), l.name), ID: l.agent.ID(), Policy: status.Policy}
		if l.name == "" {
			a.Shown = "You"
		}
		if a.Rules, err = l.agent.Rules().List(p.ctx()); err != nil {
			return d, err
		}
		if a.Mandates, err = l.agent.Rules().Mandates(p.ctx(), false); err != nil {
			return d, err
		}
		for _, r := range a.Rules {
			if r.Paused {
				d.Paused++
			}
		}
		d.Rules, d.Mandates = d.Rules+len(a.Rules), d.Mandates+len(a.Mandates)
		d.Agents = append(d.Agents, a)
	}
	return d, nil
}
