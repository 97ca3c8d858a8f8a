package gateway

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/webauthn"
	"github.com/chromedp/chromedp"

	"parley"
	"parley/actors"
	"parley/actors/view"
	"parley/capabilities"
	"parley/events"
	"parley/gateway/api"
	"parley/gateway/web"
	"parley/mailbox"
	"parley/mailbox/proof"
)

// passkeyTab is a tab on the page by the name localhost, in a browser with a device that has passkeys.
type passkeyTab struct {
	*tab
	device webauthn.AuthenticatorID
}

func (h *pageServer) passkeyTab() *passkeyTab {
	h.t.Helper()
	h.url = strings.Replace(h.url, "127.0.0.1", "localhost", 1)
	b := &passkeyTab{tab: h.openBrowser()}
	if _, err := chromedp.Call(b.ctx, webauthn.Enable, webauthn.EnableParams{}); err != nil {
		h.t.Fatal(err)
	}
	made, err := chromedp.Call(b.ctx, webauthn.AddVirtualAuthenticator, webauthn.AddVirtualAuthenticatorParams{Options: &webauthn.VirtualAuthenticatorOptions{
		Protocol: webauthn.AuthenticatorProtocolCtap2, Transport: webauthn.AuthenticatorTransportInternal,
		HasResidentKey: true, HasUserVerification: true, IsUserVerified: true, AutomaticPresenceSimulation: true,
	}})
	if err != nil {
		h.t.Fatal(err)
	}
	b.device = made.AuthenticatorID
	return b
}

// origin returns the origin of the pages.
func (h *pageServer) origin() string {
	origin, _, _ := strings.Cut(h.url, web.SessionsPath)
	return origin
}

// caller returns what calls operations as the host by its token, which is not on the node's own socket.
func (h *pageServer) caller() func(operation string, request, response any) error {
	return func(operation string, request, response any) error {
		h.t.Helper()
		body, err := json.Marshal(request)
		if err != nil {
			h.t.Fatal(err)
		}
		r, err := http.NewRequestWithContext(h.t.Context(), http.MethodPost, "http://"+h.server.Address()+api.CallPath+operation, bytes.NewReader(body))
		if err != nil {
			h.t.Fatal(err)
		}
		r.Header.Set("Content-Type", "application/json")
		status, _, text := h.send(r, h.token)
		if status == http.StatusOK {
			if response == nil {
				return nil
			}
			return json.Unmarshal([]byte(text), response)
		}
		var failed struct{ Error *parley.Error }
		if err := json.Unmarshal([]byte(text), &failed); err != nil || failed.Error == nil {
			h.t.Fatalf("%s: %d %s", operation, status, text)
		}
		return failed.Error
	}
}

// register adds a passkey on its page.
func (b *passkeyTab) register(name string) {
	b.t.Helper()
	b.open(web.PasskeysPath)
	b.until(`!document.getElementById('passkey-add').hidden`)
	b.fill("#passkey-name", name)
	b.run(`window.before = true`)
	b.click("#passkey-add button")
	b.until(fmt.Sprintf(`!window.before && document.readyState === 'complete' && [...document.querySelectorAll('#passkeys bdi')].some((e) => e.textContent === %q)`, name))
}

// require chooses which decisions want a passkey.
func (b *passkeyTab) require(need string) {
	b.t.Helper()
	b.set("#passkey-which", need)
	b.run(`window.before = true; document.querySelector('#passkey-need button').click()`)
	b.until(`!window.before && document.readyState === 'complete'`)
	if got := b.text(`document.getElementById('passkey-which').value`); got != need {
		b.t.Fatalf("it is required %s: %s", got, b.text(`document.getElementById('passkey-state').textContent`))
	}
}

// verifies sets whether the device verifies its user.
func (b *passkeyTab) verifies(is bool) {
	b.t.Helper()
	if _, err := chromedp.Call(b.ctx, webauthn.SetUserVerified, webauthn.SetUserVerifiedParams{AuthenticatorID: b.device, IsUserVerified: is}); err != nil {
		b.t.Fatal(err)
	}
}

// keepSigned has the page keep what it sends of an operation, for a replay.
const keepSigned = `{
	const send = window.fetch;
	window.sent = [];
	window.fetch = (address, init) => { if (String(address).endsWith('/rpc/respond_form')) window.sent.push(init.body); return send(address, init); };
}`

// TestPasskeySignsADecision allows a call with a passkey on the page, and verifies the proof of it. What the passkey has signed is good
// for nothing else.
func TestPasskeySignsADecision(t *testing.T) {
	t.Parallel()
	h := openPageServer(t)
	b := h.passkeyTab()
	b.register("phone")
	b.require("all")
	host := h.node.Host()
	call := h.approve("shell", `{"command":"git push"}`)
	ref := capabilities.FormID(call.Form)

	// Without one it is refused: here on the node's own socket.
	once := parley.Answer{Texts: []parley.FieldText{{Name: "decision", Text: "once"}}}
	if _, err := host.Answer(t.Context(), ref, once); parley.CodeOf(err) != parley.PasskeyRequired {
		t.Fatalf("without a passkey: %v", err)
	}
	caller := h.caller()
	var many api.DecideManyResponse
	if err := caller("decide_many", api.DecideManyRequest{Decisions: []parley.Decision{{Form: call.Form, Digest: h.digest(call), Decision: "once"}}}, &many); err != nil || parley.CodeOf(many.Results[0].Error) != parley.PasskeyRequired {
		t.Fatalf("together with others: %v, %+v", err, many)
	}

	// A device that does not verify its user signs nothing.
	b.open("/questions")
	b.run(keepSigned)
	b.verifies(false)
	b.click(asking(call) + " button[value=once]")
	b.until(fmt.Sprintf(`document.querySelector(%q)?.textContent.includes('Nothing was signed')`, asking(call)))
	b.verifies(true)
	b.run(fmt.Sprintf(`document.querySelector(%q).click()`, asking(call)+" button[value=once]")) // it may be drawn anew meanwhile
	b.reads(asking(call)+" .state", "✓ Allowed once · by you")
	if !h.permitted(call) {
		t.Error("the call is not allowed")
	}

	made, err := host.Mail().Prove(t.Context(), ref, false)
	if err != nil {
		t.Fatal(err)
	}
	p, err := proof.Read([]byte(made.Proof), h.node.ID())
	if err != nil {
		t.Fatal(err)
	}
	if len(p.Signed) != 1 || p.Signed[0].By != host.ID() || p.Signed[0].Origin != h.origin() {
		t.Fatalf("it is signed by %+v", p.Signed)
	}

	// What was sent is good for no second time, form or decision.
	var sent []string
	if err := json.Unmarshal([]byte(b.text(`JSON.stringify(window.sent.filter((s) => s.includes('passkey')))`)), &sent); err != nil || len(sent) != 1 {
		t.Fatalf("%v: %q", err, sent)
	}
	var r api.RespondFormRequest
	if err := json.Unmarshal([]byte(sent[0]), &r); err != nil || r.Passkey == nil {
		t.Fatalf("%v: %s", err, sent[0])
	}
	other := h.approve("shell", `{"command":"git push --force"}`)
	otherForm := capabilities.FormID(other.Form)
	for name, ans := range map[string]parley.Answer{
		"another form":     {Texts: r.Texts, Passkey: r.Passkey},
		"another decision": {Texts: []parley.FieldText{{Name: "decision", Text: "always"}}, Passkey: r.Passkey},
	} {
		if _, err := host.Answer(t.Context(), otherForm, ans); parley.CodeOf(err) != parley.PasskeyRefused {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := caller("respond_form", api.RespondFormRequest{FormRef: api.FormRef{ID: api.RefText(other.Form.String())}, Answer: parley.Answer{Texts: r.Texts, Passkey: r.Passkey}}, nil); parley.CodeOf(err) != parley.PasskeyRefused {
		t.Errorf("a replay: %v", err)
	}

	// A denial needs none.
	if _, err := host.Answer(t.Context(), otherForm, parley.Answer{Texts: []parley.FieldText{{Name: "decision", Text: "deny"}}}); err != nil {
		t.Errorf("a denial: %v", err)
	}

	// With the right form, the statement of another nonce was not asked for.
	third := h.approve("shell", `{"command":"git push --all"}`)
	ask := api.AskPasskeyRequest{FormRef: api.FormRef{ID: api.RefText(third.Form.String())}, Answer: once, Origin: h.origin()}
	var asked api.AskPasskeyResponse
	if err := caller("ask_passkey", ask, &asked); err != nil || !asked.Wanted || asked.Host != "localhost" || len(asked.Credentials) != 1 {
		t.Fatalf("%v: %+v", err, asked)
	}
	ask.Origin = "http://127.0.0.1:7420"
	if err := caller("ask_passkey", ask, nil); parley.CodeOf(err) != parley.InvalidArgument {
		t.Errorf("a page with a number for a name: %v", err)
	}
	ask.Origin = "https://elsewhere.example"
	if err := caller("ask_passkey", ask, nil); parley.CodeOf(err) != parley.PasskeyRequired {
		t.Errorf("another page: %v", err)
	}
	b.open("/forms/" + call.Form.String() + "?in=history")
	b.reads(asking(call)+" .state", "signed with a passkey")
	b.shotIfWanted("signed-1280")
	b.open("/forms/" + other.Form.String() + "?in=history") // the denial
	b.reads(asking(other)+" .state", "✕ Denied")
	if got := b.text(`document.getElementById("alone").innerText.includes("signed with a passkey")`); got != "false" {
		t.Error("what was not signed says that it was")
	}
	b.checkNoFaults()
}

// TestPasskeyGuardsItself removes a passkey, and requires less, by the page with a passkey alone; on the node's own machine without.
func TestPasskeyGuardsItself(t *testing.T) {
	t.Parallel()
	h := openPageServer(t)
	caller := h.caller()
	if err := caller("require_passkey", api.RequirePasskeyRequest{Need: events.PasskeyAll}, nil); parley.CodeOf(err) != parley.PasskeyRequired {
		t.Fatalf("without any passkey: %v", err)
	}
	b := h.passkeyTab()
	b.register("phone")
	b.require("high")
	if err := caller("require_passkey", api.RequirePasskeyRequest{Need: events.PasskeyNever}, nil); parley.CodeOf(err) != parley.PasskeyRequired || parley.AsError(err).Fields["act"] != "require never" {
		t.Fatalf("less by a token: %v", err)
	}
	if err := caller("remove_passkey", api.RemovePasskeyRequest{Name: "phone"}, nil); parley.CodeOf(err) != parley.PasskeyRequired {
		t.Fatalf("removed by a token: %v", err)
	}
	b.require("all")   // more
	b.require("never") // less, signed
	b.run(`window.before = true`)
	b.click("#passkeys .rows button")
	b.until(`!window.before && document.querySelector('#passkeys .muted') && !document.querySelector('#passkeys .rows')`)
	keys, needs, err := actors.PasskeysOf(h.node.Host()).List(t.Context())
	if err != nil || len(keys) != 0 || len(needs) != 1 || needs[0].Need != events.PasskeyNever {
		t.Errorf("%v: %+v, %+v", err, keys, needs)
	}
	b.checkNoFaults()
}

// TestPasskeyGuardsRules makes, resumes and prolongs rules that allow, and sets policies, while decisions want a passkey: by the page with a
// passkey alone. What denies or asks more needs none, and the host on the node's own machine none either.
func TestPasskeyGuardsRules(t *testing.T) {
	t.Parallel()
	h := openPageServer(t)
	b := h.passkeyTab()
	b.register("phone")
	b.require("high")
	caller := h.caller()
	refused := func(what, operation string, r any) {
		t.Helper()
		if err := caller(operation, r, nil); parley.CodeOf(err) != parley.PasskeyRequired {
			t.Errorf("%s: %v", what, err)
		}
	}
	taken := func(what, operation string, r any) {
		t.Helper()
		if err := caller(operation, r, nil); err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
	call := h.approve("shell", `{"command":"make"}`)
	always := parley.Answer{Texts: []parley.FieldText{{Name: "decision", Text: "always"}}}
	if _, err := h.node.Host().Answer(t.Context(), capabilities.FormID(call.Form), always); parley.CodeOf(err) != parley.PasskeyRequired {
		t.Errorf("a decision that makes a rule: %v", err)
	}
	h.decide(call, "once") // it is of no high risk
	refused("a rule by a token", "make_rule", api.MakeRuleRequest{Agent: "fae", Form: call.Form})
	b.open("/forms/" + call.Form.String() + "?in=history")
	b.live()
	b.until(`document.querySelector("#alone .make-rule button[value=rule]")`)
	b.run(`document.querySelector("#alone .make-rule details")?.setAttribute("open", "")`)
	b.verifies(false)
	b.click("#alone .make-rule button[value=rule]")
	b.reads("#alone .failure", "Nothing was signed")
	b.verifies(true)
	b.click("#alone .make-rule button[value=rule]")
	b.reads(".toast", "The rule is made")
	rules, err := h.fae.Rules().List(t.Context())
	if err != nil || len(rules) != 1 || !rules[0].Allow {
		t.Fatalf("%+v %v", rules, err)
	}
	rule := rules[0].Rule
	soon, later := capabilities.At(time.Now().Add(time.Hour)), capabilities.At(time.Now().Add(2*time.Hour))
	taken("an end", "limit_rule", api.LimitRuleRequest{Agent: "fae", Rule: rule, Until: soon})
	refused("a later end", "limit_rule", api.LimitRuleRequest{Agent: "fae", Rule: rule, Until: later})
	taken("a pause", "pause_rule", api.PauseRuleRequest{Agent: "fae", Rule: rule})
	refused("its end", "pause_rule", api.PauseRuleRequest{Agent: "fae", Rule: rule, Resume: true})
	for policy, isFree := range map[string]bool{"always": true, "deny": true, "never": false, "on-miss": false, "review": false} {
		if isFree {
			taken(policy, "set_policy", api.SetPolicyRequest{AgentID: "fae", Policy: policy})
		} else {
			refused(policy, "set_policy", api.SetPolicyRequest{AgentID: "fae", Policy: policy})
		}
	}
	other := h.approve("shell", `{"command":"make test"}`)
	if other.Form.IsZero() {
		if err := h.node.Host().Agents().SetPolicy(t.Context(), h.fae, "on-miss", nil); err != nil {
			t.Fatal(err)
		}
		other = h.approve("shell", `{"command":"make test"}`)
	}
	h.decide(other, "deny")
	taken("a rule that denies", "make_rule", api.MakeRuleRequest{Agent: "fae", Form: other.Form, Never: true})
	if _, err := h.node.Host().Rules().Make(t.Context(), h.fae, call.Form, "", true, 0, func(*parley.Permission) bool { return false }); err != nil {
		t.Errorf("on the node's own machine: %v", err)
	}
	b.checkNoFaults()
}

// TestPasskeySignsAVote votes on a call that two have to agree on: refused without a passkey, and signed on the page.
func TestPasskeySignsAVote(t *testing.T) {
	t.Parallel()
	h := openPageServer(t)
	b := h.passkeyTab()
	b.register("phone")
	b.require("all")
	host := h.node.Host()
	both, err := h.fae.Approve(t.Context(), mailbox.RequestApproval{Permission: parley.Permission{Tool: "Bash", Input: `{"command":"make"}`, Folder: "/srv/shop"}, Need: 2})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := host.Answer(t.Context(), capabilities.FormID(both.Form), parley.Answer{Texts: []parley.FieldText{{Name: "decision", Text: "once"}}}); parley.CodeOf(err) != parley.PasskeyRequired {
		t.Fatalf("without a passkey: %v", err)
	}
	used := func() capabilities.Time {
		t.Helper()
		keys, _, err := actors.PasskeysOf(host).List(t.Context())
		if err != nil || len(keys) != 1 {
			t.Fatalf("%v %+v", err, keys)
		}
		return keys[0].Used
	}
	before := used()
	b.open("/forms/" + both.Form.String() + "?in=questions")
	b.allowByKey(asking(both))
	b.reads(asking(both)+" .state", "You approved")
	if after := used(); after <= before {
		t.Errorf("the passkey was used at %v before, and at %v after the vote", before, after)
	}
	b.checkNoFaults()
}

// TestFormAsksForAPasskey answers a form and allows a call whose asker wants a passkey, though the host wants none: refused on each way without
// one, and said where it is shown. The page says how to register one, and signs.
func TestFormAsksForAPasskey(t *testing.T) {
	t.Parallel()
	h := openPageServer(t)
	caller := h.caller()
	var asked, call view.Permitted
	if err := caller("form", api.FormRequest{Acting: api.Acting{As: "fae"}, Form: parley.Form{To: "HOST", Title: "Release", Description: "Which version?", Fields: []events.Field{{Name: "version", Label: "Version"}}, Passkey: true}}, &asked); err != nil {
		t.Fatal(err)
	}
	if err := caller("approve", api.ApproveRequest{Acting: api.Acting{As: "fae"}, Approval: parley.Approval{Tool: "shell", Input: json.RawMessage(`{"command":"make"}`), Passkey: true}}, &call); err != nil {
		t.Fatal(err)
	}
	answer := parley.Answer{Texts: []parley.FieldText{{Name: "version", Text: "1.2"}}}
	once := parley.Answer{Texts: []parley.FieldText{{Name: "decision", Text: "once"}}}
	refused := func(what string, err error) {
		t.Helper()
		if parley.CodeOf(err) != parley.PasskeyRequired {
			t.Errorf("%s: %v", what, err)
		}
	}
	for form, ans := range map[capabilities.ID]parley.Answer{asked.Form: answer, call.Form: once} {
		_, err := h.node.Host().Answer(t.Context(), capabilities.FormID(form), ans)
		refused("on the node's own socket", err)
		refused("by a token", caller("respond_form", api.RespondFormRequest{FormRef: api.RefTo(form.String()), Answer: ans}, nil))
		var m view.Message
		if err := caller("get_message", api.MessageRequest{FormRef: api.RefTo(form.String())}, &m); err != nil || !m.Passkey || (m.Permission != nil) != (form == call.Form) || m.Permission != nil && !m.Permission.Passkey {
			t.Errorf("it is not said: %v %+v", err, m)
		}
	}
	var right view.AnswerRight
	if err := caller("grant_answer", api.GrantAnswerRequest{FormRef: api.RefTo(call.Form.String()), Outcomes: []string{mailbox.Once}}, &right); err != nil {
		t.Fatal(err)
	}
	refused("by a right to answer", caller("answer_with", api.AnswerWithRequest{Secret: right.Secret, Outcome: mailbox.Once}, nil))
	var many api.DecideManyResponse
	if err := caller("decide_many", api.DecideManyRequest{Decisions: []parley.Decision{{Form: call.Form, Digest: h.digest(call), Decision: "once"}}}, &many); err != nil {
		t.Fatal(err)
	}
	refused("together with others", many.Results[0].Error)

	b := h.passkeyTab()
	b.open("/forms/" + asked.Form.String() + "?in=questions")
	b.live()
	b.reads(".needs-passkey", "Needs a passkey to answer. You have none here yet: register one.")
	b.until(`document.querySelector(".entry .signed")?.textContent.includes("Needs a passkey")`)
	b.looksRight("needs-passkey")
	b.fill(fieldAt(0)+" input", "1.2")
	b.click(asking(asked) + " button[value=answer]")
	b.until(fmt.Sprintf(`document.querySelector(%q)?.textContent.includes("no passkey is registered")`, asking(asked)))
	b.shotIfWanted("needs-passkey-1280")
	b.register("phone")
	b.open("/forms/" + asked.Form.String() + "?in=questions")
	b.live()
	b.reads(".needs-passkey", "Needs a passkey to answer.")
	b.verifies(false)
	b.fill(fieldAt(0)+" input", "1.2")
	b.click(asking(asked) + " button[value=answer]")
	b.until(fmt.Sprintf(`document.querySelector(%q)?.textContent.includes("Nothing was signed")`, asking(asked)))
	b.verifies(true)
	b.click(asking(asked) + " button[value=answer]")
	b.until(fmt.Sprintf(`document.querySelector(%q)?.dataset.status === "answered"`, asking(asked)))
	b.open("/forms/" + call.Form.String() + "?in=questions")
	b.live()
	b.allowByKey(asking(call))
	b.reads(asking(call)+" .state", "✓ Allowed once")
	if !h.permitted(call) {
		t.Error("the call is not allowed")
	}

	// It is said of the decision: on its page, in History, and to clients, without a proof of each.
	b.open("/forms/" + asked.Form.String() + "?in=history")
	b.live()
	b.reads(asking(asked)+" .state", "signed with a passkey")
	b.until(`document.querySelectorAll(".decisions .entry .signed").length === 2 && document.querySelector(".decisions .entry .signed").textContent.includes("signed with a passkey")`)
	b.shotIfWanted("history-signed-1280")
	b.looksRight("history-signed")
	for form, as := range map[capabilities.ID]string{asked.Form: "fae", call.Form: ""} {
		var m view.Message
		if err := caller("get_message", api.MessageRequest{Acting: api.Acting{As: as}, FormRef: api.RefTo(form.String())}, &m); err != nil || m.Outcome == nil || !m.Outcome.Signed {
			t.Errorf("to %q it is not said that it was signed: %v %+v", as, err, m.Outcome)
		}
	}
	other := h.approve("shell", `{"command":"make test"}`)
	h.decide(other, "once") // the host wants none
	var m view.Message
	if err := caller("get_message", api.MessageRequest{FormRef: api.RefTo(other.Form.String())}, &m); err != nil || m.Outcome.Signed {
		t.Errorf("what was not signed says that it was: %v", err)
	}
	b.checkNoFaults()
}

// TestPasskeySignsPlainForms has all rules decide again, and sets a policy that allows all, by the page's plain forms where that needs a
// passkey: it is asked for, for each rule, and nothing is done without it.
func TestPasskeySignsPlainForms(t *testing.T) {
	t.Parallel()
	h := openPageServer(t)
	b := h.passkeyTab()
	b.register("phone")
	for _, command := range []string{"make", "make test"} {
		call := h.approve("shell", fmt.Sprintf(`{"command":%q}`, command))
		h.decide(call, "always")
	}
	b.require("high")
	caller := h.caller()
	paused := func() (n int) {
		t.Helper()
		rules, err := h.fae.Rules().List(t.Context())
		if err != nil || len(rules) != 2 {
			t.Fatalf("%v: %+v", err, rules)
		}
		for _, r := range rules {
			if r.Paused {
				n++
			}
		}
		return n
	}
	rules, err := h.fae.Rules().List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range rules {
		if err := caller("pause_rule", api.PauseRuleRequest{Agent: "fae", Rule: r.Rule}, nil); err != nil {
			t.Fatal(err)
		}
	}
	b.open("/access")
	b.live()
	b.verifies(false)
	b.click(".pause-all button[name=resume-all]")
	b.reads(".toast", "Nothing was signed")
	if n := paused(); n != 2 {
		t.Fatalf("%d rules are paused without a signature", n)
	}
	b.verifies(true)
	b.click(".pause-all button[name=resume-all]")
	b.until(`document.querySelector(".pause-all button[name=pause-all]")`)
	if n := paused(); n != 0 {
		t.Errorf("%d rules are paused still", n)
	}
	b.open(web.AgentPath("fae") + "?tab=rules")
	b.live()
	b.click(".policy summary")
	b.set(".policy select[name=policy]", "never")
	b.run(`window.before = true`)
	b.click(".policy button[name=set-policy]")
	b.until(`!window.before && document.readyState === "complete"`)
	if call := h.approve("shell", `{"command":"ls"}`); !call.Allowed {
		t.Error("the policy is not set")
	}
	b.checkNoFaults()
}
