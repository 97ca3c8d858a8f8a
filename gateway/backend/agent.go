package backend

import (
	"context"
	"path"
	"strconv"
	"strings"
	"time"
	"unicode"

	"parley"
	"parley/actors"
	"parley/actors/view"
	"parley/events"
	"parley/gateway/api"
	"parley/gateway/people"
	"parley/mailbox"
)

// An agentId in these requests is an ID, a locator or one of the caller's names. It may also be a prefix of an ID, or a
// title, that matches one agent. It is resolved here, and never by a client.

func fetchAgents(ctx context.Context, a *actors.Agent, r api.FetchAgentsRequest) (api.FetchAgentsResponse, error) {
	if r.Page != nil {
		if err := usePage(&r.Paging, *r.Page); err != nil {
			return api.FetchAgentsResponse{}, err
		}
	}
	limit := r.Limit
	if limit <= 0 || limit > api.MaxPage {
		limit = api.MaxPage
	}
	some, err := a.Agents().Page(ctx, r.Filter, r.After, limit+1) // one more shows that there is another page
	if err != nil {
		return api.FetchAgentsResponse{}, err
	}
	list, paged, err := api.PageOf(some, r.Paging, func(s view.AgentStatus) string { return s.ID.String() })
	got := api.FetchAgentsResponse{Agents: list, Paged: paged}
	if r.Page != nil && err == nil {
		got.PageInfo = &api.PageInfo{HasMore: paged.Next != "", NextCursor: paged.Next, PrevCursor: r.Page.Cursor}
	}
	return got, err
}

// usePage sets the paging of a request to a page. It refuses with INVALID_ARGUMENT a request that has both, and a limit
// that is not positive.
func usePage(at *api.Paging, page api.Page) error {
	switch {
	case *at != (api.Paging{}):
		return parley.Refuse(parley.InvalidArgument, "the request has a page, and after or limit beside it")
	case page.Limit != nil && *page.Limit <= 0:
		return parley.Refuse(parley.InvalidArgument, "page.limit is %d: want at least 1", *page.Limit)
	case page.Limit != nil:
		at.Limit = *page.Limit
	}
	at.After = page.Cursor
	return nil
}

func fetchAgent(ctx context.Context, a *actors.Agent, r api.AgentRequest) (api.FetchAgentResponse, error) {
	agent, err := a.Agents().Find(ctx, r.AgentID)
	if err != nil {
		return api.FetchAgentResponse{Error: api.Shown(err)}, failedItself(err)
	}
	snap, err := agent.Status(ctx)
	if err == nil {
		snap, err = a.Agents().Seen(ctx, snap)
	}
	if err == nil && !snap.Of.IsZero() && a.Agents().MayLookInto(ctx, agent) == nil {
		snap.Session, err = actors.SessionID(ctx, agent, snap.Of)
	}
	if err != nil {
		return api.FetchAgentResponse{}, err
	}
	return api.FetchAgentResponse{Agent: &snap}, nil
}

// failedItself returns err unless it is a refusal. These operations report refusals in their responses.
func failedItself(err error) error {
	switch parley.CodeOf(err) {
	case parley.Internal, parley.Timeout, parley.NotRunning:
		return err
	}
	return nil
}

func sendAgentMessage(ctx context.Context, a *actors.Agent, r api.SendAgentMessageRequest) (api.SendAgentMessageResponse, error) {
	if r.Text == "" {
		return api.SendAgentMessageResponse{}, parley.Refuse(parley.InvalidArgument, "a message needs a text")
	}
	agent, err := a.Agents().Find(ctx, r.AgentID)
	if err != nil {
		return api.SendAgentMessageResponse{Error: api.Shown(err)}, failedItself(err)
	}
	p, err := a.Prompt(ctx, agent, r.Text, r.MessageID)
	if err != nil {
		return api.SendAgentMessageResponse{AgentID: agent.ID(), Error: api.Shown(err)}, failedItself(err)
	}
	return api.SendAgentMessageResponse{AgentID: agent.ID(), Accepted: true, Queued: p.Queued, Message: p.Message}, nil
}

// maxTimeout bounds a wait in milliseconds: some 24 days.
const maxTimeout = 1 << 31

func waitForFinish(ctx context.Context, a *actors.Agent, r api.WaitForFinishRequest) (view.Finish, error) {
	if r.TimeoutMs < 0 {
		return view.Finish{}, parley.Refuse(parley.InvalidArgument, "timeoutMs %d is negative", r.TimeoutMs)
	}
	agent, err := a.Agents().Find(ctx, r.AgentID)
	if err != nil {
		return view.Finish{}, err
	}
	f, err := agent.WaitForFinish(ctx, time.Duration(min(r.TimeoutMs, maxTimeout))*time.Millisecond)
	if err != nil && ctx.Err() != nil { // the caller is still there, so the node is stopping
		return f, api.ErrStopping
	}
	if err != nil {
		return f, err
	}
	f.Final, err = a.Agents().Seen(ctx, f.Final)
	return f, err
}

func stopAgent(ctx context.Context, a *actors.Agent, r api.AgentRequest) (api.AgentResponse, error) {
	return onAgent(ctx, a, r.AgentID, a.Agents().Interrupt)
}

func holdAgent(ctx context.Context, a *actors.Agent, r api.HoldAgentRequest) (api.AgentResponse, error) {
	return onAgent(ctx, a, r.AgentID, func(ctx context.Context, agent *actors.Agent) error {
		return a.Agents().Hold(ctx, agent, r.Hold)
	})
}

func archiveAgent(ctx context.Context, a *actors.Agent, r api.AgentRequest) (api.AgentResponse, error) {
	return onAgent(ctx, a, r.AgentID, a.Agents().Archive)
}

func onAgent(ctx context.Context, a *actors.Agent, which string, do func(context.Context, *actors.Agent) error) (api.AgentResponse, error) {
	agent, err := a.Agents().Find(ctx, which)
	if err != nil {
		return api.AgentResponse{}, err
	}
	return api.AgentResponse{AgentID: agent.ID()}, do(ctx, agent)
}

func setStatus(ctx context.Context, a *actors.Agent, r api.SetStatusRequest) (api.Done, error) {
	return api.Done{}, a.Report(ctx, r.Status, r.Error)
}

func describeAgent(ctx context.Context, a *actors.Agent, r api.DescribeAgentRequest) (api.Done, error) {
	now, err := a.Status(ctx)
	if err != nil {
		return api.Done{}, err
	}
	title, labels := now.Title, r.Labels
	if r.Title != nil {
		title = *r.Title
	}
	if labels == nil {
		labels = now.Labels
	}
	if err := people.CheckDescription(title, labels, &now); err != nil {
		return api.Done{}, err
	}
	return api.Done{}, a.Describe(ctx, r.Title, r.Labels)
}

// setPolicy sets a policy. By others than always and deny, calls run that nobody has decided on: by rules, by a reviewer, or all.
func setPolicy(ctx context.Context, b *Backend, p *principal, r api.SetPolicyRequest) (api.AgentResponse, error) {
	a, err := b.agent(ctx, p, r.Actor())
	if err != nil {
		return api.AgentResponse{}, err
	}
	sent := r.Passkey
	r.Passkey = nil
	return onAgent(ctx, a, r.AgentID, func(ctx context.Context, agent *actors.Agent) error {
		if r.Policy != mailbox.AskAlways && r.Policy != mailbox.DenyAll {
			if err := b.signedLeave(ctx, p, a, agent, string(api.SetPolicy), r, sent); err != nil {
				return err
			}
		}
		return a.Agents().SetPolicy(ctx, agent, r.Policy, r.Review)
	})
}

func runAgent(ctx context.Context, b *Backend, p *principal, r api.RunAgentRequest) (api.MakeAgentResponse, error) {
	a, err := b.agent(ctx, p, r.Actor())
	if err != nil {
		return api.MakeAgentResponse{}, err
	}
	if !p.local { // a stolen token or session would be a shell on the node's machine
		return api.MakeAgentResponse{}, parley.Refuse(parley.NotPermitted, "programs are given to a node on its own socket alone").
			WithHint("parley run on the node's machine")
	}
	if err := people.CheckDescription(r.Title, r.Labels, nil); err != nil {
		return api.MakeAgentResponse{}, err
	}
	if r.Runtime == "" {
		r.Runtime = "exec"
	}
	name := r.Name
	for n := 1; ; n++ {
		if r.Name == "" {
			name = nameAfter(r.Command, n)
		}
		made, err := a.Make(ctx, actors.NewAgent{
			Kind: events.Guest, Name: name, Title: r.Title, Labels: r.Labels, Program: &r.ProgramSet, Policy: r.Policy, Wait: r.Wait,
		})
		if r.Name == "" && parley.CodeOf(err) == parley.NameTaken && n < maxNumbered {
			continue
		}
		if err != nil {
			return api.MakeAgentResponse{}, err
		}
		return api.MakeAgentResponse{Agent: made.ID(), Name: name, Kind: events.Guest}, nil
	}
}

// maxNumbered bounds the names that are tried for an agent without one.
const maxNumbered = 10_000

// nameAfter returns the nth name to try for an agent that runs a command: the program's, with n behind it if that is over
// one.
func nameAfter(command []string, n int) string {
	name := "program"
	if len(command) > 0 {
		name = path.Base(strings.ReplaceAll(command[0], `\`, "/"))
	}
	name = strings.Map(func(r rune) rune {
		if r < unicode.MaxASCII && (unicode.IsLetter(r) || unicode.IsDigit(r) || strings.ContainsRune("._-", r)) {
			return r
		}
		return '-'
	}, name)
	name = strings.Trim(name[:min(len(name), 64)], ".-_")
	if name == "" {
		name = "program"
	}
	if n > 1 {
		name += "-" + strconv.Itoa(n)
	}
	return name
}

func setQuota(ctx context.Context, a *actors.Agent, r api.SetQuotaRequest) (view.AgentUse, error) {
	agent, err := a.Agents().Find(ctx, r.AgentID)
	if err != nil {
		return view.AgentUse{}, err
	}
	if err := a.Agents().SetQuota(ctx, agent, r.Quotas, r.Reset); err != nil {
		return view.AgentUse{}, err
	}
	return a.Agents().Quota(ctx, agent)
}

func getQuota(ctx context.Context, a *actors.Agent, r api.GetQuotaRequest) (view.AgentUse, error) {
	agent, err := a.Agents().Find(ctx, r.AgentID)
	if err != nil {
		return view.AgentUse{}, err
	}
	return a.Agents().Quota(ctx, agent)
}
