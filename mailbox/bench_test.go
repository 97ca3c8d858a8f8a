package mailbox

import (
	"fmt"
	"testing"

	"parley/capabilities"
	"parley/events"
)

// benchmarkAsk is a form of four fields.
func benchmarkAsk() RequestForm {
	return RequestForm{To: "HOST", Description: "Set up your server", Fields: []events.Field{
		{Name: "host", Label: "Host", Required: true}, {Name: "port", Label: "Port", Type: events.Number, Default: capabilities.Int(80)},
		{Name: "proto", Label: "Protocol", Type: events.Select, Options: []events.Option{{Value: "http"}, {Value: "https"}}},
		{Name: "tls", Label: "TLS?", Type: events.Confirm},
	}}
}

// busyHarness has an agent fae with n events or so: it asks its host, who answers.
func busyHarness(b *testing.B, n int) *harness {
	b.Helper()
	v := newHarness(b)
	v.quick = true
	v.add("host")
	v.add("fae")
	for len(v.logs["fae"]) < n {
		v.must("fae", benchmarkAsk())
		v.must("fae", BindName{Name: fmt.Sprint("n", len(v.logs["fae"])), Value: `{"a":1}`})
		v.deliver(false)
		c, home, err := v.states["host"].DraftAnswer(Reply{
			Form: capabilities.FormNumber(uint64(len(v.states["host"].Mail.All()) - 1)), Texts: []events.FieldText{{Name: "host", Text: "example.org"}, {Name: "proto", Text: "https"}, {Name: "tls", Text: "Yes"}},
		}, v.now, v.id)
		if err != nil {
			b.Fatal(err)
		}
		v.must(v.names[home], c)
		v.deliver(false)
	}
	return v
}

func BenchmarkDecideAsk(b *testing.B) {
	s, ask := busyHarness(b, 1).states["fae"], benchmarkAsk()
	n := uint16(0)
	ids := func() capabilities.ID { n++; return harnessID(n) }
	b.ReportAllocs()
	for b.Loop() {
		if _, err := s.Decide(ask, 1, ids); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkApply(b *testing.B) {
	log := busyHarness(b, 1000).logs["fae"]
	s, i := New(harnessID(2)), 0
	b.ReportAllocs()
	for b.Loop() {
		if i == len(log) {
			s, i = New(harnessID(2)), 0
		}
		if err := s.Apply(log[i]); err != nil {
			b.Fatal(err)
		}
		i++
	}
}

// BenchmarkReplay1000 decodes and folds a log of 1,000 events.
func BenchmarkReplay1000(b *testing.B) {
	log := busyHarness(b, 1000).logs["fae"][:1000]
	body, err := events.Append(nil, log...)
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		evs, err := events.Decode(body, len(log))
		if err != nil {
			b.Fatal(err)
		}
		s := New(harnessID(2))
		for _, r := range evs {
			if err := s.Apply(r); err != nil {
				b.Fatal(err)
			}
		}
	}
}

func state1000(b *testing.B) *State {
	b.Helper()
	s := busyHarness(b, 5000).states["fae"]
	if n := len(s.Mail.All()); n != 1000 {
		b.Fatalf("%d messages", n)
	}
	return s
}

func BenchmarkSnapshot1000(b *testing.B) {
	s := state1000(b)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := s.Snapshot(); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkRestore1000(b *testing.B) {
	s := state1000(b)
	encoded, err := s.Snapshot()
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(len(encoded)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Restore(s.ID, encoded); err != nil {
			b.Fatal(err)
		}
	}
}
