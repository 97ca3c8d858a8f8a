package gateway

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"parley/gateway/api"
)

// ungrown are the operations without a row in TestGrowthOfOperations, and why.
var ungrown = map[string]string{
	"accept":             "it meets another node",
	"limit_peer":         "it is of another node",
	"drop_peer":          "it is of another node",
	"list_nodes":         "it is of other nodes; the page is that of list_names",
	"run_agent":          "it starts a process",
	"start_programs":     "it starts processes",
	"send_agent_message": "it prompts a process, and is otherwise send",
	"stop_agent":         "it stops a process",
	"hold_agent":         "it stops a process",
	"wait_for_finish":    "it waits for a process",
	"read_output":        "it is of what a process prints: TestGrowthOfANoisyGuest",
	"follow_messages":    "it waits for messages; a page is that of list_messages",
	"await_lease":        "it waits for a lease of list_leases",
	"verify":             "it reads the whole log: TestGrowthOfUpkeep",
	"archive_journal":    "it reads the whole log: TestGrowthOfUpkeep",
	"list_archive":       "it is of files, of which one has 64 MiB",
	"move_segments":      "it copies files",
	"fetch_segments":     "it copies files",
	"stop":               "it ends the node",
	"make_resource":      "it opens what is outside: a folder, or a server",
	"resolve":            "it answers a request as respond_form does",
	"reject":             "it answers a request as decline_form does",
	"withdraw_vote":      "its form needs several: it is respond_form backwards",
	"adopt":              "it binds a name as store_name does",
	"list_passkeys":      "an agent has 16 passkeys at most",
	"begin_passkey":      "it makes a challenge, of which an agent has 64 at most",
	"add_passkey":        "it needs a browser with a passkey",
	"remove_passkey":     "as add_passkey",
	"require_passkey":    "it changes a list of 256 at most",
	"ask_passkey":        "it drafts an answer as respond_form does, and needs a passkey",
	"make_rule":          "a rule is made by each decision always that prepares the rows",
	"limit_rule":         "it changes a rule as pause_rule does",
	"set_quota":          "it changes what get_quota reads",
	"try_rules":          "it looks at all calls of the past, a million in 3 s: docs/benchmarks.md",
	"propose_rules":      "as try_rules",
	"end_mandate":        "it ends a mandate, as what prepares the rows does",
	"end_resource":       "it ends what make_resource makes",
	"answer_with":        "it is respond_form by a right of grant_answer",
	"fetch_file":         "it reads a part of one file",
	"invite":             "it needs an address for other nodes; a host has 256 invitations at most",
	"uninvite":           "as invite",
	"list_invitations":   "as invite",
	"set_member":         "a group has 31 members at most",
	"complete":           "it lists at most what list_names does",
	"open_link":          "it makes a token as create_token does",
	"set_team":           "a host has 64 teams of 16 at most",
	"end_team":           "a host has 64 teams of 16 at most",
	"archive_agent":      "it ends one agent, which nothing else is left for",
}

// growing are the rows whose cost grows with what there is, and what bounds that.
var growing = map[string]string{
	"count_messages": "after a change it looks at each open form of the agent, once, in some 0.1 µs",
	"list_grants":    "it looks at all grants of the agent, of which there are 100,000 at most, in some 0.02 µs each",
	"list_names":     "it reads pages of the table, of 1,024 names each",
	"list_rules":     "an agent has 1,024 rules at most: all are described, in some 8 µs each",
	"list_schedules": "an agent has 256 schedules at most",
	"list_tokens":    "an agent has 1,024 tokens at most",
	"revoke_token":   "an agent has 1,024 tokens at most",
}

// grown is a node with so many of everything.
type grown struct {
	*testServer
	many int
	of   map[string][]string // what was made, by what it is: IDs, or numbers
}

// call performs an operation for the host, and reads the response into one, if that is not nil. It returns the bytes of the response
// as JSON.
func (g *grown) call(operation, request string, into any) int {
	g.t.Helper()
	resp, err := g.server.backend.Call(g.t.Context(), g.server.backend.Local(), operation, api.JSON(request))
	var text []byte
	if err == nil {
		text, err = json.Marshal(resp)
	}
	if err == nil && into != nil {
		err = json.Unmarshal(text, into)
	}
	if err != nil {
		g.t.Errorf("%s %s: %v", operation, request, err)
	}
	return len(text)
}

// lasting is how many mandates do not end: an agent may have 32.
const lasting = 5

// workers is how much is made at once.
const workers = 32

// each calls make for numbers from 0, many at once, and keeps what it returns.
func (g *grown) each(what string, count int, make func(i int) string) {
	g.eachOf(what, count, workers, make)
}

// eachOf is each with so many at once.
func (g *grown) eachOf(what string, count, workers int, make func(i int) string) {
	g.t.Helper()
	all := g.of[what]
	from := len(all)
	all = slices.Grow(all, count)[:from+count]
	var work sync.WaitGroup
	for worker := range workers {
		work.Go(func() {
			for i := worker; i < count; i += workers {
				all[from+i] = make(i)
			}
		})
	}
	work.Wait()
	g.of[what] = all
}

// member returns a member of a response.
func (g *grown) member(operation, request, name string) string {
	var resp map[string]any
	g.call(operation, request, &resp)
	return fmt.Sprint(resp[name])
}

// openGrown opens a node on which there are so many of everything, as far as that is bounded. All of it is of the host and two
// guests, fae and bob.
func openGrown(t *testing.T, many int) *grown {
	g := &grown{testServer: openTestServer(t), many: many, of: map[string][]string{}}
	g.guest("fae")
	g.guest("bob")
	few := max(many/10, 10) // of what is dear
	g.call("set_quota", `{"agentId":"fae","quotas":{"forms":1000000,"names":1000000,"grants":1000000,"approvals":1000000}}`, nil)
	g.each("agent", many, func(i int) string {
		return g.member("make_agent", fmt.Sprintf(`{"name":"guest-%d"}`, i), "agent")
	})
	g.each("name", many, func(i int) string {
		g.call("store_name", fmt.Sprintf(`{"as":"fae","name":"value-%d","value":%d}`, i, i), nil)
		return fmt.Sprint("value-", i)
	})
	g.each("sent", many, func(i int) string {
		return g.member("send", fmt.Sprintf(`{"as":"fae","recipient":"HOST","text":"message %d of some words"}`, i), "message")
	})
	g.each("form", 2*many, func(i int) string {
		return g.member("form", fmt.Sprintf(`{"as":"fae","recipient":"HOST","description":"form %d","fields":[{"name":"a"}]}`, i), "form")
	})
	decide := func(decision string, i int) string {
		form := g.member("approve", fmt.Sprintf(`{"as":"fae","tool":"Bash","input":{"command":"echo %s %d"},"folder":"/srv/shop"}`, decision, i), "form")
		digest := g.member("get_message", fmt.Sprintf(`{"id":%q}`, form), "digest")
		var resp api.DecideManyResponse
		g.call("decide_many", fmt.Sprintf(`{"decisions":[{"form":%q,"digest":%q,"decision":%q}]}`, form, digest, decision), &resp)
		if resp.Results[0].Error != nil {
			t.Error(resp.Results[0].Error)
		}
		return form
	}
	g.each("settled", many, func(i int) string { return decide("once", i) })
	g.each("rule", min(many, 1000), func(i int) string { return decide("always", i) })
	g.each("call", many, func(i int) string {
		form := g.member("approve", fmt.Sprintf(`{"as":"fae","tool":"Bash","input":{"command":"make target-%d"},"folder":"/srv/shop"}`, i), "form")
		return fmt.Sprintf(`"form":%q,"digest":%q`, form, g.member("get_message", fmt.Sprintf(`{"id":%q}`, form), "digest"))
	})
	var rules api.ListRulesResponse
	g.call("list_rules", `{"agent":"fae","limit":1000}`, &rules)
	for _, r := range rules.Rules {
		g.of["standing"] = append(g.of["standing"], r.Rule.String())
	}
	g.eachOf("mandate", min(few, 100), 1, func(i int) string {
		form := g.member("approve", fmt.Sprintf(`{"as":"fae","tool":"plan","input":{"plan":%d}}`, i), "form")
		g.call("respond_form", fmt.Sprintf(`{"id":%q,"texts":[{"name":"decision","text":"once"}],"mandate":{"rules":[{"tool":"pay"}],"calls":5}}`, form), nil)
		var all api.ListMandatesResponse
		g.call("list_mandates", `{"agent":"fae"}`, &all)
		for _, m := range all.Mandates {
			if m.Form.String() == form && i >= lasting {
				g.call("end_mandate", fmt.Sprintf(`{"agent":"fae","mandate":%q}`, m.Mandate), nil)
			}
			if m.Form.String() == form {
				return m.Mandate.String()
			}
		}
		t.Errorf("the mandate of %s is not there", form)
		return ""
	})
	g.each("topic", few, func(i int) string {
		g.call("make_topic", fmt.Sprintf(`{"topic":"topic-%d"}`, i), nil)
		return fmt.Sprint("topic-", i)
	})
	g.each("post", many, func(i int) string {
		return g.member("post", fmt.Sprintf(`{"topic":"topic-0","text":"post %d"}`, i), "message")
	})
	g.each("lease", min(many, 900), func(i int) string {
		return g.member("lease", fmt.Sprintf(`{"patterns":["file:/srv/%d"]}`, i), "lease")
	})
	g.each("token", min(many, 900), func(i int) string {
		return g.member("create_token", fmt.Sprintf(`{"scopes":["read"],"note":"%d"}`, i), "id")
	})
	g.each("schedule", min(many, 200), func(i int) string {
		return g.member("schedule", fmt.Sprintf(`{"recipient":"fae","text":"later %d","every":"@yearly"}`, i), "number")
	})
	g.each("copy", many, func(i int) string {
		g.call("copy_name", fmt.Sprintf(`{"old":"fae","new":"copy-%d","facet":"ask"}`, i), nil)
		return fmt.Sprint("copy-", i)
	})
	g.each("grant", many, func(i int) string {
		return g.member("grant_answer", fmt.Sprintf(`{"id":%q}`, g.of["form"][2*many-1-i]), "grant")
	})
	g.eachOf("file", few, 1, func(i int) string {
		content := fmt.Appendf(nil, "content %d", i)
		return g.member("store_file", fmt.Sprintf(`{"size":%d,"data":%q}`, len(content), base64.StdEncoding.EncodeToString(content)), "digest")
	})
	var folder struct{ Name string }
	g.call("make_resource", fmt.Sprintf(`{"kind":"folder","name":"shared","folder":%q}`, t.TempDir()), &folder)
	g.each("use", min(few, 500), func(i int) string {
		return g.member("invoke", `{"name":"shared","verb":"list","input":{"path":"."}}`, "use")
	})
	return g
}

// rows are the requests of TestGrowthOfOperations: for each operation one, or several that take other ways. Of what it uses up, n counts.
func (g *grown) rows() map[string]func(n int) (operation, request string) {
	one := func(operation, format string, args ...func(n int) any) func(int) (string, string) {
		return func(n int) (string, string) {
			var values []any
			for _, arg := range args {
				values = append(values, arg(n))
			}
			return operation, fmt.Sprintf(format, values...)
		}
	}
	next := func(what string) func(n int) any { return func(n int) any { return g.of[what][len(g.of[what])-1-n] } }
	some := func(what string) func(n int) any { return func(n int) any { return g.of[what][(n*7)%len(g.of[what])] } }
	number := func(n int) any { return n }
	rows := map[string]func(int) (string, string){
		"make_agent":            one("make_agent", `{"name":"made-%d"}`, number),
		"list_names":            one("list_names", `{"limit":50}`),
		"lookup":                one("lookup", `{"as":"fae","name":%q}`, some("name")),
		"locate":                one("locate", `{"name":"guest-%d"}`, number),
		"store_name":            one("store_name", `{"as":"fae","name":"new-%d","value":1}`, number),
		"rename_name":           one("rename_name", `{"as":"fae","old":"new-%d","new":"old-%[1]d"}`, number),
		"remove_name":           one("remove_name", `{"as":"fae","name":"old-%d"}`, number),
		"copy_name":             one("copy_name", `{"old":"fae","new":"second-%d","facet":"ask"}`, number),
		"list_grants":           one("list_grants", `{"limit":50}`),
		"invoke":                one("invoke", `{"name":"shared","verb":"list","input":{"path":"."}}`),
		"form":                  one("form", `{"as":"fae","recipient":"HOST","description":"one more","fields":[{"name":"a"}]}`),
		"request":               one("request", `{"as":"fae","recipient":"HOST","text":"something"}`),
		"approve":               one("approve", `{"as":"fae","tool":"Bash","input":{"command":"make %d"},"folder":"/srv/shop"}`, number),
		"approve by a rule":     one("approve", `{"as":"fae","tool":"Bash","input":{"command":"echo always %d"},"folder":"/srv/shop"}`, number),
		"approve by a mandate":  one("approve", `{"as":"fae","tool":"pay","input":{"amount":%d},"key":"pay-%[1]d"}`, number),
		"approve of bob":        one("approve", `{"as":"bob","tool":"Bash","input":{"command":"make %d"},"folder":"/srv/shop"}`, number),
		"list_rules":            one("list_rules", `{"agent":"fae","limit":50}`),
		"pause_rule":            one("pause_rule", `{"agent":"fae","rule":%q}`, some("standing")),
		"remove_rule":           one("remove_rule", `{"agent":"fae","rule":%q}`, next("standing")),
		"revoke":                one("revoke", `{"grant":%q}`, next("grant")),
		"decide_many":           one("decide_many", `{"decisions":[{%s,"decision":"deny"}]}`, next("call")),
		"list_mandates":         one("list_mandates", `{"agent":"fae","limit":50}`),
		"get_mandate":           one("get_mandate", `{"agent":"fae","mandate":%q}`, func(n int) any { return g.of["mandate"][n%lasting] }),
		"await":                 one("await", `{"as":"fae","id":%q}`, some("settled")),
		"amend_form":            one("amend_form", `{"as":"fae","id":%q,"description":"amended"}`, some("form")),
		"respond_form":          one("respond_form", `{"id":%q,"texts":[{"name":"a","text":"b"}]}`, next("form")),
		"claim_form":            one("claim_form", `{"id":%q}`, some("form")),
		"cancel_form":           one("cancel_form", `{"as":"fae","id":%q}`, func(n int) any { return g.of["form"][g.many+n] }),
		"decline_form":          one("decline_form", `{"id":%q}`, func(n int) any { return g.of["form"][g.many-1-n] }),
		"forward_form":          one("forward_form", `{"id":%q,"recipient":"bob"}`, func(n int) any { return g.of["form"][g.many/2+n] }),
		"grant_answer":          one("grant_answer", `{"id":%q}`, func(n int) any { return g.of["form"][n] }),
		"proof":                 one("proof", `{"id":%q}`, some("settled")),
		"set_away":              one("set_away", `{"as":"bob"}`),
		"list_stand_ins":        one("list_stand_ins", `{"as":"bob"}`),
		"set_attention":         one("set_attention", `{"quiet":"never"}`),
		"get_attention":         one("get_attention", `{}`),
		"send":                  one("send", `{"as":"fae","recipient":"HOST","text":"one more"}`),
		"reply":                 one("reply", `{"id":%q,"text":"a reply"}`, some("sent")),
		"schedule":              one("schedule", `{"recipient":"fae","text":"later","every":"@yearly"}`),
		"list_schedules":        one("list_schedules", `{}`),
		"end_schedule":          one("end_schedule", `{"schedule":%s}`, next("schedule")),
		"store_file":            one("store_file", `{"size":3,"data":"YWJj"}`),
		"lease":                 one("lease", `{"patterns":["file:/srv/more/%d"]}`, number),
		"renew_lease":           one("renew_lease", `{"lease":%s}`, some("lease")),
		"release_lease":         one("release_lease", `{"lease":%s}`, next("lease")),
		"list_leases":           one("list_leases", `{}`),
		"list_teams":            one("list_teams", `{}`),
		"make_topic":            one("make_topic", `{"topic":"one-more-%d"}`, number),
		"end_topic":             one("end_topic", `{"topic":"one-more-%d"}`, number),
		"list_topics":           one("list_topics", `{"as":"bob"}`),
		"subscribe":             one("subscribe", `{"as":"guest-%d","topic":"topic-0"}`, number),
		"post":                  one("post", `{"topic":"topic-0","text":"one more"}`),
		"list_posts":            one("list_posts", `{"topic":"topic-0","limit":20}`),
		"acknowledge":           one("acknowledge", `{"id":%q}`, some("sent")),
		"dismiss":               one("dismiss", `{"id":%q}`, next("sent")),
		"restore_message":       one("restore_message", `{"id":%q}`, next("sent")),
		"snooze":                one("snooze", `{"id":%q,"until":"2100-01-01T00:00:00Z"}`, func(n int) any { return g.of["sent"][g.many/2+n] }),
		"move_messages":         one("move_messages", `{"do":"dismiss","messages":[{"id":%q}]}`, func(n int) any { return g.of["sent"][n] }),
		"mark_read":             one("mark_read", `{"numbers":[%d]}`, number),
		"count_messages":        one("count_messages", `{}`),
		"save_draft":            one("save_draft", `{"id":%q,"texts":[{"name":"a","text":"b"}]}`, func(n int) any { return g.of["form"][n] }),
		"fetch_draft":           one("fetch_draft", `{"id":%q}`, func(n int) any { return g.of["form"][n] }),
		"get_message":           one("get_message", `{"id":%q}`, some("sent")),
		"read_mail":             one("read_mail", `{"as":"bob","count":true}`),
		"list_messages":         one("list_messages", `{"last":50}`),
		"list_messages, all":    one("list_messages", `{"all":true,"last":50}`),
		"list_messages, open":   one("list_messages", `{"all":true,"open":true,"last":50}`),
		"list_messages, unread": one("list_messages", `{"unread":true,"last":50}`),
		"search":                one("search", `{"text":"message 7","limit":10}`),
		"invoke of no name":     one("invoke", `{}`),
		"search of decisions":   one("search", `{"all":true,"settled":true,"forms":true,"from":"fae","limit":10}`),
		"read_log":              one("read_log", `{"limit":50}`),
		"fetch_agents":          one("fetch_agents", `{"limit":50}`),
		"fetch_agent":           one("fetch_agent", `{"agentId":"guest-%d"}`, number),
		"set_status":            one("set_status", `{"as":"bob","status":"running"}`),
		"describe_agent":        one("describe_agent", `{"as":"bob","labels":{"a":"%d"}}`, number),
		"set_policy":            one("set_policy", `{"agentId":"bob","policy":"on-miss"}`),
		"create_token":          one("create_token", `{"scopes":["read"]}`),
		"list_tokens":           one("list_tokens", `{"limit":50}`),
		"revoke_token":          one("revoke_token", `{"token":%q}`, next("token")),
		"get_quota":             one("get_quota", `{"agentId":"fae"}`),
		"status":                one("status", `{}`),
	}
	return rows
}

// spent returns the processor time of the process, and the bytes that it has allocated.
func spent(t *testing.T) (time.Duration, uint64) {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		t.Fatal(err)
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano()), m.TotalAlloc
}

// cost is what a call takes.
type cost struct{ micros, bytes, answer float64 }

// rounds is how often the calls of a row are measured, for the least of them.
const rounds = 4

// together are the rows whose calls wait for a common write. What the index does meanwhile would be more than they take, called one
// after another.
var together = map[string]bool{"mark_read": true, "save_draft": true}

// cost lowers least to what the calls of a row take, the least of several rounds: those from one on. It waits for the index first,
// as each search does.
func (g *grown) cost(name string, row func(n int) (string, string), least *cost, from int) {
	calls, atOnce := 3, 1
	if together[name] {
		calls, atOnce = 12, 12
	}
	g.call("search", `{"text":"settled"}`, nil)
	for round := from; round < from+rounds; round++ {
		var answer atomic.Int64
		var work sync.WaitGroup
		processor, bytes := spent(g.t)
		for worker := range atOnce {
			work.Go(func() {
				for i := worker; i < calls; i += atOnce {
					operation, request := row(round*calls + i)
					answer.Add(int64(g.call(operation, request, nil)))
				}
			})
		}
		work.Wait()
		after, allocated := spent(g.t)
		each := float64(calls)
		least.micros = min(least.micros, float64((after-processor).Microseconds())/each)
		least.bytes = min(least.bytes, float64(allocated-bytes)/each)
		least.answer = max(least.answer, float64(answer.Load())/each)
	}
}

// TestGrowthOfOperations calls each operation on a node with few of everything, and on one with many. What a call takes may grow with
// its answer, and with nothing else.
func TestGrowthOfOperations(t *testing.T) {
	few, many := 100, 2000
	if os.Getenv("PARLEY_NIGHTLY") != "" {
		many = 10_000
	}
	began, _ := spent(t)
	small, large := openGrown(t, few), openGrown(t, many)
	made, _ := spent(t)
	called := map[string]bool{}
	smallRows, largeRows := small.rows(), large.rows()
	names := slices.SortedFunc(maps.Keys(smallRows), func(a, b string) int { return strings.Compare(turnOf(a)+a, turnOf(b)+b) })
	for _, name := range names {
		operation, _ := smallRows[name](0)
		called[operation] = true
		a, b := cost{math.Inf(1), math.Inf(1), 0}, cost{math.Inf(1), math.Inf(1), 0}
		small.cost(name, smallRows[name], &a, 0)
		grows, dear := 1.0, true
		// Both have in them what the nodes do beside, snapshots and the index, which all rounds of a time may meet.
		for times := 0; dear && times < 4; times++ {
			large.cost(name, largeRows[name], &b, times*rounds)
			grows = max(1, b.answer/a.answer)
			dear = growing[name] == "" && (b.micros > 10*grows*a.micros+5000 || b.bytes > 4*grows*a.bytes+48<<10)
		}
		t.Logf("%-22s %6.0f %6.0f µs %8.0f %8.0f bytes; the answer is %.1f times as large", name, a.micros, b.micros, a.bytes, b.bytes, grows)
		if dear {
			t.Errorf("%s costs more where there is much", name)
		}
	}
	ended, _ := spent(t)
	t.Logf("%v of the processor, of which %v made what there is", ended-began, made-began)
	for _, o := range api.Operations() {
		if why, exempt := ungrown[o.Name]; called[o.Name] == exempt || exempt && why == "" {
			t.Errorf("%s has no row, or also a reason to have none", o.Name)
		}
	}
}

// turnOf sorts the rows that need what others have done behind them.
func turnOf(row string) string {
	switch row {
	case "rename_name", "end_topic", "restore_message":
		return "s"
	case "remove_name", "fetch_draft":
		return "t"
	}
	return "a"
}
