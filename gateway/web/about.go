package web

import (
	"cmp"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"parley"
	"parley/actors/view"
	"parley/capabilities"
	"parley/events"
	"parley/gateway/api"
	"parley/mailbox"
)

// about is what stands beside an agent's activity.
type about struct {
	Waits   []row       // the first of what waits for the reader
	More    int         // that wait besides
	Answer  string      // the address of all of these
	Rules   []view.Rule // those that are used most
	RulesOf int         // how many there are

	Pauses, Resumes bool // some of them decide, or all of those that there are are paused

	Access     []writer // the first of who may write to the agent
	AccessMore int      // of them besides
}

// Bounds of what stands beside an activity.
const (
	aboutWaits  = 5
	aboutRules  = 4
	aboutAccess = 4
)

// about looks up what stands beside the activity.
func (p *agentRequest) about() error {
	d := &p.data
	q := listQuery{View: needsReader, Agent: d.ID.String()}
	waiting, err := p.needs(q, "", nil)
	if err != nil {
		return err
	}
	rules, err := p.shown.Rules().List(p.ctx())
	if err != nil {
		return err
	}
	slices.SortStableFunc(rules, func(a, b view.Rule) int { return cmp.Compare(b.Uses, a.Uses) })
	n := min(len(waiting.Rows), aboutWaits)
	if err := p.writers(); err != nil {
		return err
	}
	pausing := slices.IndexFunc(rules, func(r view.Rule) bool { return !r.Paused }) >= 0
	d.About = about{Waits: waiting.Rows[:n], More: waiting.Total - n, Answer: q.Address(), Rules: rules[:min(len(rules), aboutRules)], RulesOf: len(rules), Pauses: d.MayEnd && pausing, Resumes: d.MayEnd && len(rules) > 0 && !pausing}
	d.About.Access = d.Writers[:min(len(d.Writers), aboutAccess)]
	d.About.AccessMore = len(d.Writers) - len(d.About.Access)
	return nil
}

// policies are the policies of an agent in words.
var policies = []choice{
	{Value: "on-miss", Label: "Ask me"}, {Value: mailbox.Review, Label: "Ask a reviewer, then me"}, {Value: "always", Label: "Ask me, even where a rule applies"},
	{Value: "deny", Label: "Deny"}, {Value: "never", Label: "Allow, without asking"},
}

// Policies returns the policies that the agent may have; chosen is what was sent, or the one that it has.
func (d agentPage) Policies() []choice {
	return chosen(policies, cmp.Or(d.Reviewer.Typed("policy"), d.Policy, "on-miss"))
}

// PolicyWords returns the policy that the agent has, in words.
func (d agentPage) PolicyWords() string { return labelOf(policies, cmp.Or(d.Policy, "on-miss")) }

// reviewer is who reviews an agent's calls, and within which bound.
type reviewer struct {
	Name string // the reader's name for it
	Sent url.Values
	events.ReviewerSet
}

// Says returns the terms of the review in words.
func (r reviewer) Says() string {
	may := "any call without high risk"
	if r.Cautious {
		may = "any call without a known risk"
	}
	if len(r.Rules) > 0 {
		words := (&mailbox.Mandate{MandateGiven: events.MandateGiven{Rules: r.Rules}}).Words()
		may += " that one of these covers: " + strings.Join(words, "; ")
	}
	says := fmt.Sprintf("It may deny with a reason, and allow %s. A call waits %s for it, then it comes to you.", may, view.ShortDelay(r.Wait))
	if r.Sample > 0 {
		says += fmt.Sprintf(" Of what it allows, %d of 100 come to you all the same.", r.Sample)
	}
	return says
}

// Seconds returns how long a call waits, for the control.
func (r reviewer) Seconds() string {
	if r.Wait == 0 {
		return ""
	}
	return strconv.FormatInt(int64(r.Wait)/1000, 10)
}

// Typed returns what was sent of a control.
func (r reviewer) Typed(name string) string { return r.Sent.Get(name) }

// reviewer looks up who reviews the agent's calls.
func (p *agentRequest) reviewer() error {
	d := &p.data
	d.Reviewer.Sent = p.r.PostForm
	set, err := p.shown.Rules().Reviewer(p.ctx())
	if err != nil || set == nil {
		return err
	}
	d.Reviewer.ReviewerSet = *set
	d.Reviewer.Name = p.partyOf(set.Reviewer).Name
	return nil
}

// policyOf returns the request for the policy that the page's form sets. The terms of a review are all in it.
func policyOf(id capabilities.ID, sent url.Values) (r api.SetPolicyRequest, err error) {
	r = api.SetPolicyRequest{AgentID: id.String(), Policy: sent.Get("policy")}
	if r.Policy != mailbox.Review {
		return r, nil
	}
	t := &parley.ReviewTerms{Reviewer: strings.TrimSpace(sent.Get("review-by")), Cautious: sent.Has("review-cautious")}
	if t.Reviewer == "" {
		return r, parley.Refuse(parley.InvalidArgument, "who reviews? Name an agent")
	}
	if text := strings.TrimSpace(sent.Get("review-sample")); text != "" {
		n, err := strconv.ParseUint(text, 10, 32)
		if err != nil {
			return r, parley.Refuse(parley.InvalidArgument, "a sample is a number from 0 to 100, and not %.20q", text)
		}
		t.Sample = uint32(n)
	}
	if text := strings.TrimSpace(sent.Get("review-wait")); text != "" {
		n, err := strconv.ParseUint(text, 10, 16)
		if err != nil || n == 0 {
			return r, parley.Refuse(parley.InvalidArgument, "a call waits from 1 to 3600 seconds, and not %.20q", text)
		}
		t.Wait = events.Delay(time.Duration(n) * time.Second / time.Millisecond)
	}
	folder := strings.TrimSpace(sent.Get("review-folder"))
	add := func(rule parley.MandateRule) { rule.Folder = folder; t.Rules = append(t.Rules, rule) }
	for line := range strings.Lines(sent.Get("review-commands")) {
		if line = strings.TrimSpace(line); line != "" {
			add(parley.MandateRule{Command: line})
		}
	}
	if glob := strings.TrimSpace(sent.Get("review-files")); glob != "" {
		add(parley.MandateRule{Files: glob, Read: sent.Has("review-read")})
	}
	if tool := strings.TrimSpace(sent.Get("review-tool")); tool != "" {
		add(parley.MandateRule{Tool: tool})
	}
	switch {
	case len(t.Rules) > 0 && folder == "":
		return r, parley.Refuse(parley.InvalidArgument, "in which folder are the calls made that it may allow?")
	case len(t.Rules) == 0 && folder != "":
		return r, parley.Refuse(parley.InvalidArgument, "which calls in the folder may it allow? Name commands, files or a tool")
	}
	r.Review = t
	return r, nil
}
