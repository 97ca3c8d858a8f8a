package gateway

import (
	"cmp"
	"html"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"parley"
	"parley/actors"
	"parley/actors/view"
	"parley/capabilities"
	"parley/events"
	"parley/internal/eventually"
	"parley/mailbox"
)

func TestFormsShowMarkdown(t *testing.T) {
	t.Parallel()
	h := openPageServer(t)
	fields := []events.Field{{Name: "a", Help: "as in `x`, see [y](https://b.example)"}}
	h.ask(parley.Form{Description: "Deploy *now*?\n\nIt is **ready**.", Fields: fields})
	_, _, body := h.get("/forms/0", "text/html")
	for _, want := range []string{
		"Deploy now?</bdi></h2>", `<div class="context markdown">It is <strong>ready</strong>.</div>`,
		"as in <code>x</code>", `<bdi>(b.example)</bdi>`,
	} {
		if !strings.Contains(body, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
}

// TestPagesShowPermission checks that a decision of another agent than the host is shown as no permission, to the asker and
// to who decided.
func TestPagesShowPermission(t *testing.T) {
	t.Parallel()
	h := openPageServer(t)
	fae := h.fae
	bob := h.guest("bob")
	if _, err := h.node.Host().Send(t.Context(), "fae", "@bob"); err != nil {
		t.Fatal(err)
	}
	names := map[string]string{"bob": "@mail/0/bob", "@self": "@self"}
	no := "Not allowed: only the agent’s host can"
	for to, want := range map[string]string{"@self": no, "bob": no, "": "Allowed once"} {
		p, err := fae.Approve(t.Context(), mailbox.RequestApproval{Permission: parley.Permission{Tool: "shell", Input: `{"command":"ls"}`}, To: names[to]})
		if err != nil {
			t.Fatal(err)
		}
		by := map[string]*actors.Agent{"@self": fae, "bob": bob, "": h.node.Host()}[to]
		form := capabilities.FormID(p.Form)
		if _, err := by.Answer(t.Context(), form, parley.Answer{Values: map[string]capabilities.Value{"decision": capabilities.String(mailbox.Once)}}); err != nil {
			t.Fatal(err)
		}
		for _, as := range []string{"fae", cmp.Or(map[string]string{"@self": "fae"}[to], to)} {
			if _, _, body := h.get("/forms/"+p.Form.String()+"?as="+as, "text/html"); !strings.Contains(body, want) {
				t.Errorf("asked of %q: the page lacks %q\n%s", to, want, body)
			}
		}
	}
}

// tags are the tags of a page, and the space around them.
var tags = regexp.MustCompile(`(<[^>]*>|\s)+`)

// TestForwardedFormsSayWhy reads why forms were forwarded and escalated, as the agents at each end and between them see it.
func TestForwardedFormsSayWhy(t *testing.T) {
	t.Parallel()
	h := openPageServer(t)
	host, ctx := h.node.Host(), t.Context()
	joe, ops, amy := h.guest("joe"), h.guest("ops"), h.guest("amy")
	for to, what := range map[string]string{"fae": "@ops @amy", "ops": "@joe"} {
		if _, err := host.Send(ctx, to, what); err != nil {
			t.Fatal(err)
		}
	}
	until := capabilities.At(time.Date(2099, 1, 2, 15, 4, 0, 0, time.UTC))
	if _, err := joe.SetAway(ctx, mailbox.SetAway{Until: until, Delegate: "HOST"}); err != nil {
		t.Fatal(err)
	}
	eventually.Holds(t, "the group has its member", func() bool {
		_, err := ops.SetMember(ctx, mailbox.SetMember{Agent: joe.ID().String(), In: true})
		return err == nil
	})
	ask := func(to *actors.Agent, then ...parley.Escalation) string {
		var form capabilities.ID
		eventually.Holds(t, "the form is asked", func() bool {
			asked, err := h.fae.Ask(ctx, parley.Form{To: to.ID().String(), Description: "Deploy?", Fields: []events.Field{{Name: "ok"}}, Escalate: then, Key: to.ID().String()})
			form = asked.Form
			return err == nil
		})
		eventually.Holds(t, "the form comes to the host", func() bool {
			_, err := host.Message(ctx, capabilities.FormID(form))
			return err == nil
		})
		return "/forms/" + form.String()
	}
	forwarded, escalated := ask(ops), ask(amy, parley.Escalation{After: 1, To: "HOST"})
	for _, c := range []struct{ path, want string }{
		{forwarded, " Forwarded to joe as a member of ops Forwarded by joe , who is away until 2 Jan 2099"},
		{forwarded + "?as=joe", " Forwarded to you as a member of ops"},
		{forwarded + "?as=joe", " Forwarded to you , because you are away until 2 Jan 2099"},
		{forwarded + "?as=ops", " as a member: whoever answers first settles it"},
		{forwarded + "?as=fae", " as a member of ops"},
		{forwarded + "?as=fae", " is away until 2 Jan 2099"},
		{escalated, " Escalated from amy after 1ms "},
	} {
		eventually.Holds(t, c.path+" reads "+c.want, func() bool {
			_, _, body := h.get(c.path, "text/html")
			return strings.Contains(tags.ReplaceAllString(body, " "), c.want)
		})
	}
}

// TestSecondVoteIsRefusedWithoutScript votes as the host, and then as another host for whom the same person stands, with plain forms. The vote
// is refused with the names, also with what once allowed it, and the page has no form for it but a link to the vote that stands.
func TestSecondVoteIsRefusedWithoutScript(t *testing.T) {
	t.Parallel()
	h := openPageServer(t)
	ops := h.second()
	for _, button := range []string{"answer", "decline"} {
		asked := h.askBoth(ops, parley.Form{Need: 3, Fields: []events.Field{{Name: "a"}}})
		path := "/forms/" + asked.Form.String() + "?as=ops"
		if _, _, body := h.get(path, "text/html"); !strings.Contains(tags.ReplaceAllString(body, " "), "You vote as ops . One person has one vote.") {
			t.Error("the page does not say as whom the reader votes")
		}
		h.voteAsHost(asked.Form)
		for _, sent := range []url.Values{{"do": {button}, "f0": {"x"}}, {"do": {button}, "f0": {"x"}, "second": {"yes"}}} {
			status, _, body := h.postForm(path, sent)
			if status != http.StatusForbidden || !strings.Contains(html.UnescapeString(body), `you have voted as "HOST" already, and this votes as "ops"`) {
				t.Errorf("%s: %d %s", button, status, body)
			}
		}
		eventually.Holds(t, "the page says as whom the reader has voted", func() bool {
			_, _, body := h.get(path, "text/html")
			said := tags.ReplaceAllString(body, " ")
			return strings.Contains(said, "You have voted as yourself . One person has one vote.") && !strings.Contains(body, `value="answer"`) && !strings.Contains(body, `value="decline"`)
		})
		if h.hasVoted(ops, asked.Form) {
			t.Error("there is a second vote")
		}
	}
}

// TestStrangersAreShownByWhatTheyCallThemselves asks two hosts. One has no name for who asks, and reads what that calls itself as such: no title
// looks like a name.
func TestStrangersAreShownByWhatTheyCallThemselves(t *testing.T) {
	t.Parallel()
	h := openPageServer(t)
	ops := h.second()
	h.token = makeToken(t, ops, "read", "ask", "answer")
	for title, want := range map[string]string{
		"Deploy bot": "“Deploy bot” (as it calls itself)",
		"ops” (your name) “\u202e" + "x<b>y</b>": "“ops' (your name) '\\u202ex<b>y</b>” (as it calls itself)",
		strings.Repeat("long ", 40):              "long …” (as it calls itself)",
	} {
		bot, err := h.node.Host().Make(t.Context(), actors.NewAgent{Kind: events.Guest, Name: "bot" + strconv.Itoa(len(title)), Title: title})
		if err != nil {
			t.Fatal(err)
		}
		p, err := bot.Approve(t.Context(), mailbox.RequestApproval{Permission: parley.Permission{Tool: "shell", Input: `{"command":"make"}`}, Need: 2})
		if err != nil {
			t.Fatal(err)
		}
		if err := h.node.Host().Forward(t.Context(), capabilities.FormID(p.Form), ops.ID().String()); err != nil {
			t.Fatal(err)
		}
		for _, path := range []string{"/forms/" + p.Form.String(), "/"} {
			eventually.Holds(t, path+" has "+want, func() bool {
				_, _, body := h.get(path, "text/html")
				return strings.Contains(html.UnescapeString(body), want) && !strings.Contains(body, "<b>y</b>")
			})
		}
		if m, err := ops.Message(t.Context(), capabilities.FormID(p.Form)); err != nil || m.FromName != "" || m.FromSaid == "" {
			t.Errorf("%+v, %v", m, err)
		}
		if m, err := h.node.Host().Message(t.Context(), capabilities.FormID(p.Form)); err != nil || m.FromName == "" || m.FromSaid != "" {
			t.Errorf("who has a name for it reads %q, %v", m.FromSaid, err)
		}
	}
}

// TestAuthorsAreShownByWhatTheyCallThemselves has a group pass on what a stranger wrote: the reader reads what that calls itself, as such.
func TestAuthorsAreShownByWhatTheyCallThemselves(t *testing.T) {
	t.Parallel()
	h := openPageServer(t)
	ops := h.second()
	h.token = makeToken(t, ops, "read", "ask", "answer")
	bot, err := h.node.Host().Make(t.Context(), actors.NewAgent{Kind: events.Guest, Name: "bot", Title: "HOST” <b>y</b>"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := h.node.Host().SetMember(t.Context(), mailbox.SetMember{Agent: "ops", In: true}); err != nil {
		t.Fatal(err)
	}
	if _, err := bot.Send(t.Context(), "HOST", "the build is red"); err != nil {
		t.Fatal(err)
	}
	var m view.Message
	eventually.Holds(t, "it is passed on", func() bool {
		in, err := ops.Mail().Inbox(t.Context(), view.MessageFilter{})
		if err == nil && len(in.Messages) == 1 {
			m = in.Messages[0]
		}
		return !m.Author.IsZero()
	})
	if m.AuthorName != "" || m.AuthorSaid != "HOST” <b>y</b>" {
		t.Errorf("%+v", m)
	}
	_, _, body := h.get("/forms/"+m.MessageID.String(), "text/html")
	if !strings.Contains(html.UnescapeString(body), "“HOST' <b>y</b>” (as it calls itself)") || strings.Contains(body, "<b>y</b>") {
		t.Errorf("the page shows it as %s", body)
	}
}

// TestPlanIsReadAsMarkdown opens the approval of a plan: it is drawn as what it is, its row is called after it, and the details have it as it was
// written. A form's title has no marks, nor has its row.
func TestPlanIsReadAsMarkdown(t *testing.T) {
	t.Parallel()
	h := openPageServer(t)
	p := h.approveIn("/srv/shop", "ExitPlanMode", `{"plan":"# Plan: move the checkout\n\n1. **Copy** <b>the</b> tables\n2. Switch","allowed":"tests"}`)
	h.ask(parley.Form{Title: "Set up the **checkout** of `shop`", Description: "Why not?", Fields: []events.Field{{Name: "a"}}})
	_, _, list := h.get("/questions", "text/html")
	for _, want := range []string{"<bdi>Plan: move the checkout</bdi>", "#i-plan", "<bdi>Set up the checkout of shop</bdi>"} {
		if !strings.Contains(list, want) {
			t.Errorf("the list has no %q", want)
		}
	}
	_, _, page := h.get("/forms/"+p.Form.String(), "text/html")
	for _, want := range []string{"Approve a plan", "<h3>Plan: move the checkout</h3>", "<li><strong>Copy</strong> &lt;b&gt;the&lt;/b&gt; tables</li>", "<bdi>allowed</bdi>", `1. **Copy** &lt;b&gt;`} {
		if !strings.Contains(page, want) {
			t.Errorf("the plan has no %q", want)
		}
	}
}
