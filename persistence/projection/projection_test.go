package projection

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/oklog/ulid/v2"
	"pgregory.net/rapid"

	"parley/capabilities"
	"parley/events"
)

func id(n byte) capabilities.ID {
	return capabilities.ID{ULID: ulid.ULID{15: n}, Node: capabilities.NodeOf([32]byte{31: 7})}
}

var self, bob, ann = id(1), id(2), id(3)

// box is a mailbox whose events go into an index.
type box struct {
	t       testing.TB
	index   *Index
	id      capabilities.ID
	version uint64
	number  uint64
}

func open(t testing.TB) *Index {
	t.Helper()
	x, err := Open(t.Context(), filepath.Join(t.TempDir(), "search.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = x.Close() })
	return x
}

func (b *box) add(all ...events.Event) {
	b.t.Helper()
	var next []events.Recorded
	for i, e := range all {
		next = append(next, events.Recorded{At: capabilities.Time(b.version) + capabilities.Time(i) + 1, Event: e})
	}
	if err := b.index.Add(b.t.Context(), b.id, b.version+1, next); err != nil {
		b.t.Fatal(err)
	}
	b.version += uint64(len(all))
}

// message posts a message and returns its ID.
func (b *box) message(from capabilities.ID, text string, reply capabilities.ID) capabilities.ID {
	b.t.Helper()
	m := capabilities.ID{ULID: ulid.ULID{14: 1, 15: byte(b.number), 13: byte(b.number >> 8)}, Node: from.Node}
	b.add(&events.MessagePosted{Number: b.number, Message: m, From: from, To: b.id, Text: []events.Span{{Words: text}}, ReplyTo: reply, Date: capabilities.Time(1000 + b.number)})
	b.number++
	return m
}

func (b *box) find(q Query) []uint64 {
	b.t.Helper()
	found, _, err := b.index.Find(b.t.Context(), b.id, q)
	if err != nil {
		b.t.Fatal(err)
	}
	return found
}

func (b *box) want(q Query, numbers ...uint64) {
	b.t.Helper()
	if got := b.find(q); !slices.Equal(got, numbers) {
		b.t.Errorf("%+v: %d, want %d", q, got, numbers)
	}
}

// TestAccentsMakeNoDifference finds words that are written without their accents, and with those that others leave out. Letters that only
// look as if they had one, as й, are letters of their own.
func TestAccentsMakeNoDifference(t *testing.T) {
	t.Parallel()
	b := &box{t: t, index: open(t), id: self}
	b.message(bob, "Łódź, Århus, smørrebrød, Đorđe, ırmak İzmir, Ægir and hors-d'œuvre", capabilities.ID{})
	b.message(bob, "Ελληνικά, Σίσυφος; ёлка, замо́к, район; שָׁלוֹם; مُحَمَّد أحمد; Việt Nam; がぎ; 한국", capabilities.ID{})
	for _, plain := range []string{"lodz", "ŁÓDŹ", "arhus", "smorrebrod", "SMØRREBRØD", "dorde", "irmak", "izmir", "aegir", "oeuvre", "smør*"} {
		b.want(Query{Words: plain}, 0)
	}
	for _, plain := range []string{"ελληνικα", "ΕΛΛΗΝΙΚΑ", "σισυφοσ", "Σίσυφος", "елка", "ЁЛКА", "замок", "שלום", "محمد", "احمد", "viet", "がぎ", "한국", "район"} {
		b.want(Query{Words: plain}, 1)
	}
	b.want(Query{Words: "раион"})
	b.want(Query{Words: "かき"})
}

func TestFind(t *testing.T) {
	t.Parallel()
	b := &box{t: t, index: open(t), id: self}
	first := b.message(bob, "Grüße vom Café: the deployment fails", capabilities.ID{})
	reply := b.message(ann, "which deployment?", first)
	b.message(bob, "the one of yesterday", reply)
	form := id(40)
	b.add(&events.FormRequested{Number: 3, ID: form, From: bob, To: self, Title: "Port", Description: "Which port does the proxy take?",
		Fields: []events.Field{{Name: "port", Label: "Port number", Type: events.Number}}, Date: 1500})
	b.number++
	b.want(Query{}, 3, 2, 1, 0)
	b.want(Query{Order: Oldest, Limit: 2}, 0, 1)
	b.want(Query{Order: Oldest, Limit: 2, Skip: 2}, 2, 3)
	b.want(Query{Words: "gruße cafe"}, 0)
	b.want(Query{Words: "DEPLOYMENT"}, 1, 0)
	b.want(Query{Words: `"deployment fails"`}, 0)
	b.want(Query{Words: `"fails deployment"`})
	b.want(Query{Words: "deploy*"}, 1, 0)
	b.want(Query{Words: "deploy"})
	b.want(Query{Words: "deployment", Sender: []capabilities.ID{ann}}, 1)
	b.want(Query{Sender: []capabilities.ID{bob}, Kinds: []string{"message"}}, 2, 0)
	b.want(Query{Thread: first}, 2, 1, 0)
	b.want(Query{Thread: reply}, 2, 1, 0)
	b.want(Query{Since: 1001, Until: 1002}, 1)
	b.want(Query{Words: "proxy"}, 3)
	b.want(Query{Subject: "port"}, 3)
	b.want(Query{Subject: "proxy"})
	b.want(Query{Outcomes: []string{"answered"}})
	b.add(&events.FormAnswered{Form: form, By: self, Date: 1600, Values: capabilities.Record(map[string]capabilities.Value{
		"port": capabilities.Int(8080), "why": capabilities.String("nginx listens there"), "secret": capabilities.Sealed([]byte("hunter2"))})})
	b.want(Query{Outcomes: []string{"answered"}, Decider: self}, 3)
	b.want(Query{Words: "nginx"}, 3)
	b.want(Query{Words: "hunter2"})
	for _, spread := range []string{"proxy nginx", "nginx proxy", "ngin* prox*", `"listens there" "the proxy"`, "port nginx 8080 proxy", "nginx nginx proxy"} {
		for _, order := range []Order{Newest, Oldest, Relevance, Urgency, BySubject, Ended} {
			b.want(Query{Words: spread, Order: order}, 3) // in the question and its answer together
		}
	}
	b.want(Query{Words: "8080"}, 3)
	b.want(Query{Words: "nginx deployment"}) // of which the other is in another message
	b.want(Query{Words: "nginx proxy apache"})
	b.want(Query{Words: `"proxy nginx"`}) // no phrase goes over both
	b.want(Query{Words: "nginx proxy", Sender: []capabilities.ID{ann}})
	b.want(Query{Words: "nginx", Order: Relevance}, 3)
	other := &box{t: t, index: b.index, id: bob}
	other.message(ann, "the deployment of another", capabilities.ID{})
	other.want(Query{Words: "deployment"}, 0)
	b.want(Query{Words: "deployment", Order: Relevance}, 1, 0)
	if err := b.index.Forget(t.Context(), self); err != nil {
		t.Fatal(err)
	}
	b.want(Query{})
	other.want(Query{Words: "deployment"}, 0)
}

// TestEndsAreFoundInTheirOrder ends forms in another order than they were asked in, and reads the ends part by part.
func TestEndsAreFoundInTheirOrder(t *testing.T) {
	t.Parallel()
	b := &box{t: t, index: open(t), id: self}
	other := &box{t: t, index: b.index, id: bob}
	for n := range byte(6) {
		for _, in := range []*box{b, other} {
			in.add(&events.FormRequested{Number: in.number, ID: id(40 + n), From: ann, To: in.id, Title: fmt.Sprint("Form ", n), Description: "Which port?", Date: capabilities.Time(1000) + capabilities.Time(n)})
			in.number++
		}
	}
	b.want(Query{Order: Ended})
	for at, n := range []byte{3, 0, 5, 2, 4} {
		b.add(&events.FormAnswered{Form: id(40 + n), By: self, Date: capabilities.Time(2000 + at/4), Values: capabilities.Record(map[string]capabilities.Value{"port": capabilities.Int(80)})})
	}
	other.add(&events.FormAnswered{Form: id(41), By: self, Date: 3000, Values: capabilities.Record(nil)})
	b.want(Query{Order: Ended}, 4, 5, 3, 2, 0) // those of one time by their numbers
	b.want(Query{Order: Ended, Limit: 2}, 4, 5)
	b.want(Query{Order: Ended, Limit: 2, Before: 5}, 3, 2)
	b.want(Query{Order: Ended, Before: 2}, 0)
	b.want(Query{Order: Ended, Before: 0xffffffffff})
	b.want(Query{Order: Ended, Words: "port"}, 4, 5, 3, 2, 0)
	b.want(Query{Order: Ended, Words: "form", Before: 3, Limit: 1}, 2)
	b.want(Query{Order: Ended, Subject: "form", Decider: self}, 4, 5, 3, 2, 0)
	other.want(Query{Order: Ended}, 1)
}

// TestWordsWithoutSpacesAreFound searches in scripts that put no spaces between words, for a part of what was written, whole and as the beginning of a
// word. Letters in another order are not found, nor are words of other scripts by a part of them.
func TestWordsWithoutSpacesAreFound(t *testing.T) {
	b := &box{t: t, index: open(t), id: self}
	for _, text := range []string{"日本語のメッセージ テスト", "ไทยไม่มีช่องว่าง", "build v2の結果 is red"} {
		b.message(bob, text, capabilities.ID{})
	}
	for words, want := range map[string][]uint64{
		"日本": {0}, "本語": {0}, "メッセ": {0}, "ﾃｽﾄ": {0}, "日本*": {0}, "テスト 日": {0}, `"語の"`: {0}, "語日": nil, "本日": nil,
		"ไทย": {1}, "ช่อง": {1}, "ว่าง": {1}, "งาน": nil,
		"結果": {2}, "v2": {2}, "v2の結": {2}, "buil": nil, "build 結果": {2},
	} {
		if got := b.find(Query{Words: words}); !slices.Equal(got, want) {
			t.Errorf("%s is in %v, want %v", words, got, want)
		}
	}
}

// TestWordsAreNoOperators searches for what the query language of the index would read as more than words.
func TestWordsAreNoOperators(t *testing.T) {
	t.Parallel()
	b := &box{t: t, index: open(t), id: self}
	b.message(bob, `a AND b OR "c" NEAR(d e) subject:x -- ' ; DROP TABLE message`, capabilities.ID{})
	for _, words := range []string{`AND`, `a AND b`, `NEAR(d e)`, `subject:x`, `"`, `""`, `'`, `*`, `a*`, `^a`, `-b`, `(`, "a\x00b", `{body}:a`, `a + b`, strings.Repeat("a ", 400), "\xff", `"a"*`, `--`, `;`} {
		_ = b.find(Query{Words: words})
		_ = b.find(Query{Subject: words})
	}
	b.want(Query{Words: "DROP TABLE"}, 0)
	b.want(Query{Words: `"unfinished phrase`})
	b.want(Query{Words: "OR"}, 0)
	b.want(Query{Words: "***"})
}

// TestFindFitsAModel compares searches with those of a list, for any messages and queries.
func TestFindFitsAModel(t *testing.T) {
	t.Parallel()
	words := []string{"alpha", "beta", "gamma", "délta", "epsilon"}
	x := open(t)
	count := byte(0)
	rapid.Check(t, func(rt *rapid.T) {
		count++
		b := &box{t: t, index: x, id: capabilities.ID{ULID: ulid.ULID{0: 1, 15: count}, Node: self.Node}}
		type model struct {
			from capabilities.ID
			text []string
		}
		var all []model
		for range rapid.IntRange(0, 12).Draw(rt, "messages") {
			m := model{from: rapid.SampledFrom([]capabilities.ID{bob, ann}).Draw(rt, "from"), text: rapid.SliceOfN(rapid.SampledFrom(words), 0, 4).Draw(rt, "text")}
			answer := rapid.SliceOfN(rapid.SampledFrom(words), 0, 3).Draw(rt, "answer")
			if len(answer) == 0 {
				b.message(m.from, strings.Join(m.text, " "), capabilities.ID{})
			} else {
				form := capabilities.ID{ULID: ulid.ULID{14: 2, 15: byte(b.number), 13: count}, Node: m.from.Node}
				b.add(&events.FormRequested{Number: b.number, ID: form, From: m.from, To: self, Description: strings.Join(m.text, " "), Date: 1000},
					&events.FormAnswered{Form: form, By: self, Date: 2000, Values: capabilities.Record(map[string]capabilities.Value{"x": capabilities.String(strings.Join(answer, " "))})})
				b.number++
				m.text = append(m.text, answer...)
			}
			all = append(all, m)
		}
		q := Query{Words: strings.Join(rapid.SliceOfN(rapid.SampledFrom(words), 0, 2).Draw(rt, "words"), " "), Skip: rapid.IntRange(0, 3).Draw(rt, "skip"), Limit: rapid.IntRange(1, 5).Draw(rt, "limit")}
		if rapid.Bool().Draw(rt, "by sender") {
			q.Sender = []capabilities.ID{bob}
		}
		q.Order = rapid.SampledFrom([]Order{Newest, Oldest}).Draw(rt, "order")
		var want []uint64
		for n, m := range all {
			fits := len(q.Sender) == 0 || m.from == bob
			for _, w := range strings.Fields(q.Words) {
				fits = fits && slices.Contains(m.text, w)
			}
			if fits {
				want = append(want, uint64(n))
			}
		}
		if q.Order == Newest {
			slices.Reverse(want)
		}
		want = want[min(q.Skip, len(want)):]
		wantMore := len(want) > q.Limit
		want = want[:min(q.Limit, len(want))]
		got, more, err := x.Find(t.Context(), b.id, q)
		if err != nil || !slices.Equal(got, want) || more != wantMore {
			rt.Fatalf("%+v: %d %v %v, want %d %v", q, got, more, err, want, wantMore)
		}
	})
}

// TestPositionIsKept adds events in and out of order.
func TestPositionIsKept(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "search.db")
	x, err := Open(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	b := &box{t: t, index: x, id: self}
	b.message(bob, "one", capabilities.ID{})
	b.message(bob, "two", capabilities.ID{})
	e := []events.Recorded{{At: 9, Event: &events.MessageDismissed{Number: 0}}}
	for _, version := range []uint64{1, 2, 4} {
		if err := x.Add(t.Context(), self, version, e); !errors.Is(err, ErrOrder) {
			t.Errorf("version %d: %v", version, err)
		}
	}
	if err := x.Close(); err != nil {
		t.Fatal(err)
	}
	if b.index, err = Open(t.Context(), path); err != nil {
		t.Fatal(err)
	}
	defer b.index.Close() //nolint:errcheck // only read from
	if m, err := b.index.At(t.Context(), self); err != nil || m.Version != 2 || m.At != 2 {
		t.Errorf("%+v, %v", m, err)
	}
	b.want(Query{Words: "two"}, 1)
}

// TestDamageCostsTimeAlone damages the file in many ways: it is replaced, or read as it was.
func TestDamageCostsTimeAlone(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "search.db")
	fill := func() *box {
		x, err := Open(t.Context(), path)
		if err != nil {
			t.Fatal(err)
		}
		b := &box{t: t, index: x, id: self}
		for tries := 0; b.number < 200; {
			m, err := x.At(t.Context(), self)
			if err != nil {
				t.Fatal(err)
			}
			var next []events.Recorded
			for n := m.Version; n < 200; n++ {
				next = append(next, events.Recorded{At: 1, Event: &events.MessagePosted{Number: n, Message: id(byte(n)), From: bob, To: self, Text: []events.Span{{Words: fmt.Sprintf("message %d about the harbour", n)}}}})
			}
			err = x.Add(t.Context(), self, m.Version+1, next)
			if tries++; errors.Is(err, ErrOrder) && tries < 3 {
				continue
			} else if err != nil {
				t.Fatal(err)
			}
			b.number = 200
		}
		return b
	}
	for what, damage := range map[string]func(text []byte) []byte{
		"cut":      func(text []byte) []byte { return text[:len(text)/2] },
		"empty":    func([]byte) []byte { return nil },
		"no index": func([]byte) []byte { return []byte("this is a text and no index of anything") },
		"zeros":    func(text []byte) []byte { clear(text[4096:]); return text },
		"header":   func(text []byte) []byte { text[30] ^= 0xff; return text },
		"ones": func(text []byte) []byte {
			for i := 4096; i < len(text); i += 97 {
				text[i] = 0xff
			}
			return text
		},
	} {
		b := fill()
		if err := b.index.Close(); err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, damage(text), 0o600); err != nil {
			t.Fatal(err)
		}
		b = fill()
		if _, _, err := b.index.Find(t.Context(), self, Query{Words: "harbour"}); err != nil { // found only now
			if !errors.Is(err, ErrOrder) {
				t.Fatalf("%s: %v", what, err)
			}
			_ = b.index.Close()
			b = fill()
		}
		b.want(Query{Words: "harbour 199"}, 199)
		if err := b.index.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

func BenchmarkAdd(b *testing.B) {
	x := &box{t: b, index: open(b), id: self}
	next := make([]events.Event, 500)
	b.ReportAllocs()
	for b.Loop() {
		for i := range next {
			next[i] = &events.MessagePosted{Number: x.number, Message: capabilities.ID{ULID: ulid.Make(), Node: bob.Node}, From: bob, To: self,
				Text: []events.Span{{Words: fmt.Sprintf("the build of branch %d has failed with %d tests, see the log", x.number, i)}}, Date: capabilities.Time(x.number)}
			x.number++
		}
		x.add(next...)
	}
	b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(x.number), "µs/row")
}

func BenchmarkFind(b *testing.B) {
	x := &box{t: b, index: open(b), id: self}
	for range 100 {
		next := make([]events.Event, 1000)
		for i := range next {
			next[i] = &events.MessagePosted{Number: x.number, Message: capabilities.ID{ULID: ulid.Make(), Node: bob.Node}, From: bob, To: self,
				Text: []events.Span{{Words: fmt.Sprintf("the build of branch%d has failed", x.number)}}, Date: capabilities.Time(x.number)}
			x.number++
		}
		x.add(next...)
	}
	for range 100 { // and as many questions with their answers
		next := make([]events.Event, 0, 2000)
		for range 1000 {
			form := capabilities.ID{ULID: ulid.Make(), Node: bob.Node}
			next = append(next, &events.FormRequested{Number: x.number, ID: form, From: bob, To: self, Description: fmt.Sprintf("which port does branch%d take", x.number), Date: capabilities.Time(x.number)},
				&events.FormAnswered{Form: form, By: self, Date: capabilities.Time(x.number), Values: capabilities.Record(map[string]capabilities.Value{"port": capabilities.String("it takes port 8080")})})
			x.number++
		}
		x.add(next...)
	}
	for _, q := range []Query{{Words: "branch777"}, {Words: "build failed", Limit: 20}, {Words: "which 8080", Limit: 20}, {Words: "branch150777 8080"}, {Words: "build 8080"}, {Words: "build", Limit: 20}, {Words: "build", Limit: 20, Order: Oldest}, {Sender: []capabilities.ID{ann}}, {}} {
		b.Run(fmt.Sprintf("%s%s", q.Words, q.Order), func(b *testing.B) {
			for b.Loop() {
				x.find(q)
			}
		})
	}
}

// TestRuledCallsAreFoundOverMailboxes has rules, a mandate and a policy decide calls of two agents. A call that several rules decide is one.
func TestRuledCallsAreFoundOverMailboxes(t *testing.T) {
	x := open(t)
	a, b := &box{t: t, index: x, id: bob}, &box{t: t, index: x, id: ann}
	allow, deny, mandate := id(40), id(41), id(42)
	a.add(&events.RuleAdded{Rule: allow, Allow: true}, &events.RuleAdded{Rule: deny}, &events.MandateGiven{Mandate: mandate})
	if err := x.Add(t.Context(), bob, 4, []events.Recorded{
		{At: 10, Event: &events.RuleUsed{Rule: allow, Tool: "Bash", Input: `{"command":"make café"}`}},
		{At: 10, Event: &events.MandateCharged{Mandate: mandate, Tool: "Bash", Input: `{"command":"make café"}`}}, // of the same call
		{At: 10, Event: &events.RuleUsed{Rule: allow, Tool: "Bash", Input: `{"command":"make café"}`}},            // the same again
		{At: 30, Event: &events.RuleUsed{Rule: deny, Tool: "Bash", Input: `{"command":"rm x"}`}},
		{At: 40, Event: &events.MandateCharged{Mandate: mandate, Tool: "pay", Input: `{}`}},
	}); err != nil {
		t.Fatal(err)
	}
	b.add(&events.PolicySet{Policy: "deny"}, &events.RuleUsed{Tool: "Edit", Input: `{}`}, &events.PolicySet{Policy: "never"})
	if err := x.Add(t.Context(), ann, 4, []events.Recorded{{At: 20, Event: &events.RuleUsed{Tool: "Edit", Input: `{}`}}}); err != nil {
		t.Fatal(err)
	}
	both := []capabilities.ID{bob, ann}
	for _, c := range []struct {
		q    RuledQuery
		want string
	}{
		{RuledQuery{}, ""},
		{RuledQuery{Agents: both}, "40+8/3 30-7/2 20+4/0 10+6/1 10+4/1 2-2/0"},
		{RuledQuery{Agents: both, Limit: 2}, "40+8/3 30-7/2"},
		{RuledQuery{Agents: both, Before: 30, BeforeID: 4}, "30-7/2 20+4/0 10+6/1 10+4/1 2-2/0"},
		{RuledQuery{Agents: both, Before: 30}, "20+4/0 10+6/1 10+4/1 2-2/0"},
		{RuledQuery{Agents: []capabilities.ID{ann}}, "20+4/0 2-2/0"},
		{RuledQuery{Agents: both, Verdict: Denied}, "30-7/2 2-2/0"},
		{RuledQuery{Agents: both, Tool: "Edit", Since: 3}, "20+4/0"},
		{RuledQuery{Agents: both, Words: "cafe"}, "10+6/1 10+4/1"},
		{RuledQuery{Agents: both, Words: "!"}, ""},
	} {
		if c.q.Limit == 0 {
			c.q.Limit = 10
		}
		found, err := x.Ruled(t.Context(), c.q)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, f := range found {
			sign := "-"
			if f.Allowed {
				sign = "+"
			}
			got = append(got, fmt.Sprintf("%d%s%d/%d", f.At, sign, f.Version, f.ByVersion))
		}
		if strings.Join(got, " ") != c.want {
			t.Errorf("%+v: %q and not %q", c.q, got, c.want)
		}
	}
	if err := x.Forget(t.Context(), bob); err != nil {
		t.Fatal(err)
	}
	if found, err := x.Ruled(t.Context(), RuledQuery{Agents: both, Limit: 10}); err != nil || len(found) != 2 {
		t.Errorf("%v %+v", err, found)
	}
}

// TestNoFileIsMapped searches and adds at once, over several connections, and looks at what the process has mapped: a write to such memory
// cannot be stopped while the disk hangs, and all of the process waits for it.
func TestNoFileIsMapped(t *testing.T) {
	b := &box{t: t, index: open(t), id: self}
	for i := range 50 {
		b.message(bob, fmt.Sprintf("words %d", i), capabilities.ID{})
	}
	var work sync.WaitGroup
	for range 4 {
		work.Go(func() {
			for range 20 {
				if _, _, err := b.index.Find(t.Context(), self, Query{Words: "words"}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	for i := range 50 {
		b.message(bob, fmt.Sprintf("words %d", 50+i), capabilities.ID{})
	}
	work.Wait()
	mapped, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		t.Skip("only Linux lists what is mapped")
	}
	if strings.Contains(string(mapped), filepath.Base(b.index.path)) {
		t.Error("the file, or one beside it, is mapped")
	}
}

// TestDecisionsAreCountedOverMailboxes counts calls that a person and rules have decided, of several agents at once and from a time on. It counts
// neither what is open, nor what was decided for others, nor forms.
func TestDecisionsAreCountedOverMailboxes(t *testing.T) {
	t.Parallel()
	x := open(t)
	a, b := &box{t: t, index: x, id: bob}, &box{t: t, index: x, id: ann}
	form := byte(50)
	decide := func(of *box, from capabilities.ID, kind events.FormKind, decision string, date capabilities.Time) {
		form++
		of.add(&events.FormRequested{Number: of.number, ID: id(form), From: from, To: self, Kind: kind, Title: "Bash", Description: `{"command":"make"}`, Date: date})
		of.number++
		if decision != "" {
			of.add(&events.FormAnswered{Form: id(form), By: self, Date: date, Values: capabilities.Record(map[string]capabilities.Value{"decision": capabilities.String(decision)})})
		}
	}
	for _, decision := range []string{"once", "always", "deny", ""} {
		decide(a, bob, events.Approval, decision, 1000)
	}
	decide(a, bob, events.Approval, "never", 500)
	decide(a, bob, events.PlainForm, "once", 1000)
	decide(a, ann, events.Approval, "once", 1000) // which it has for another's answer
	decide(b, ann, events.Approval, "deny", 2000)
	allow := id(40)
	a.add(&events.RuleAdded{Rule: allow, Allow: true})
	for _, at := range []capabilities.Time{400, 1500, 2500} {
		if err := x.Add(t.Context(), bob, a.version+1, []events.Recorded{{At: at, Event: &events.RuleUsed{Rule: allow, Tool: "Bash", Input: "{}"}}}); err != nil {
			t.Fatal(err)
		}
		a.version++
	}
	for since, want := range map[capabilities.Time][2]Decided{
		0:    {{a.version, 5, 2}, {b.version, 0, 1}},
		1000: {{a.version, 4, 1}, {b.version, 0, 1}},
		2000: {{a.version, 1, 0}, {b.version, 0, 1}},
		3000: {{Version: a.version}, {Version: b.version}},
	} {
		got, err := x.Decided(t.Context(), since, []capabilities.ID{bob, ann, self})
		if err != nil || len(got) != 2 || got[bob] != want[0] || got[ann] != want[1] {
			t.Errorf("since %d: %v %v, want %v", since, err, got, want)
		}
	}
	if got, err := x.Decided(t.Context(), 0, []capabilities.ID{ann}); err != nil || len(got) != 1 {
		t.Errorf("of one: %v %v", err, got)
	}
}
