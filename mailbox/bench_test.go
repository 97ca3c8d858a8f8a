package mailbox_test

import (
	"fmt"
	"testing"

	"parley"
	"parley/capabilities"
	"parley/events"
	"parley/mailbox"
	"parley/mailbox/mailboxtest"
)

// benchmarkAsk returns a form of four fields.
func benchmarkAsk() mailbox.RequestForm {
	return mailbox.RequestForm{Form: parley.Form{
		To:          "HOST",
		Description: "Set up your server",
		Fields: []events.Field{
			{Name: "host", Label: "Host", Required: true}, {Name: "port", Label: "Port", Type: events.Number, Default: capabilities.Int(80)},
			{Name: "proto", Label: "Protocol", Type: events.Select, Options: []events.Option{{Value: "http"}, {Value: "https"}}},
			{Name: "tls", Label: "TLS?", Type: events.Confirm},
		},
	}}
}

// busyHarness returns a harness whose agent fae has about n events. It asks forms that its host answers.
func busyHarness(b *testing.B, n int) *mailboxtest.Harness {
	b.Helper()
	v := mailboxtest.New(b)
	v.SkipChecksums = true
	v.Add("host")
	v.Add("fae")
	for len(v.Logs["fae"]) < n {
		v.Must("fae", benchmarkAsk())
		v.Must("fae", mailbox.BindName{Name: fmt.Sprint("n", len(v.Logs["fae"])), Value: `{"a":1}`})
		v.Deliver(false)
		c, home, err := v.States["host"].DraftAnswer(mailbox.Reply{Form: capabilities.FormNumber(uint64(len(v.Messages("host")) - 1)), Answer: parley.Answer{
			Texts: []events.FieldText{{Name: "host", Text: "example.org"}, {Name: "proto", Text: "https"}, {Name: "tls", Text: "Yes"}},
		}}, v.Now, v.NewID)
		if err != nil {
			b.Fatal(err)
		}
		v.Must(v.NameOf[home], c)
		v.Deliver(false)
	}
	return v
}

func BenchmarkDecideAsk(b *testing.B) {
	s, ask := busyHarness(b, 1).States["fae"], benchmarkAsk()
	n := uint16(0)
	ids := func() capabilities.ID { n++; return mailboxtest.NthID(n) }
	b.ReportAllocs()
	for b.Loop() {
		if _, err := s.Decide(ask, 1, ids); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkApply(b *testing.B) {
	log := busyHarness(b, 1000).Logs["fae"]
	s, i := mailbox.New(mailboxtest.NthID(2)), 0
	b.ReportAllocs()
	for b.Loop() {
		if i == len(log) {
			s, i = mailbox.New(mailboxtest.NthID(2)), 0
		}
		if err := s.Apply(log[i]); err != nil {
			b.Fatal(err)
		}
		i++
	}
}

// BenchmarkReplay1000 decodes and folds a log of 1,000 events.
func BenchmarkReplay1000(b *testing.B) {
	log := busyHarness(b, 1000).Logs["fae"][:1000]
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
		s := mailbox.New(mailboxtest.NthID(2))
		for _, r := range evs {
			if err := s.Apply(r); err != nil {
				b.Fatal(err)
			}
		}
	}
}

func state1000(b *testing.B) *mailbox.State {
	b.Helper()
	s := busyHarness(b, 5000).States["fae"]
	if n := s.Mail.Index.Len(); n != 1000 {
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
		if _, err := mailbox.Restore(s.ID, encoded); err != nil {
			b.Fatal(err)
		}
	}
}
