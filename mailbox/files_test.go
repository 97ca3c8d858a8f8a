package mailbox_test

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"
	"testing"
	"time"

	"parley"
	"parley/capabilities"
	"parley/events"
	"parley/mailbox"
	"parley/mailbox/form"
	"parley/mailbox/mailboxtest"
	"parley/mailbox/quota"
)

func digestOf(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

func fileOf(name, text string) events.File {
	return events.File{Digest: digestOf(text), Name: name, Size: int64(len(text)), Type: "text/plain"}
}

func storeFile(v *mailboxtest.Harness, as string, f events.File) {
	v.Must(as, mailbox.StoreFile{Digest: f.Digest, Size: f.Size})
}

func carrying(files ...events.File) parley.Post {
	return parley.Post{Header: parley.Header{Files: files}, Text: "see"}
}

// TestOnlyStoredFilesAreSent has an agent that knows a file's digest and size send it. Only who has stored it may.
func TestOnlyStoredFilesAreSent(t *testing.T) {
	v := mailboxtest.New(t)
	v.Add("host")
	v.Add("fae")
	f := fileOf("secret.txt", "secret")
	storeFile(v, "host", f)
	for name, post := range map[string]mailbox.Command{
		"message":  mailbox.PostMessage{To: "HOST", Post: carrying(f)},
		"schedule": mailbox.ScheduleMessage{To: "HOST", Post: carrying(f), At: v.Now + 1000},
	} {
		if _, err := v.Decide("fae", post); parley.CodeOf(err) != parley.NoSuchFile {
			t.Errorf("%s: %v", name, err)
		}
	}
	storeFile(v, "fae", f)
	other := f
	other.Size++
	if _, err := v.Decide("fae", mailbox.PostMessage{To: "HOST", Post: carrying(other)}); parley.CodeOf(err) != parley.NoSuchFile {
		t.Errorf("another size: %v", err)
	}
	v.Must("fae", mailbox.PostMessage{To: "HOST", Post: carrying(f)})
	v.Deliver(false)
	m := v.Messages("host")[0]
	if got, from, err := mailbox.FileOf(v.States["host"], m, f.Digest); err != nil || got != f || from != v.States["fae"].ID {
		t.Errorf("%+v from %s, %v", got, from, err)
	}
	if _, _, err := mailbox.FileOf(v.States["host"], m, digestOf("other")); parley.CodeOf(err) != parley.NoSuchFile {
		t.Error(err)
	}
}

// TestHostileFilesAreRefused has what no message may carry: from an agent, and from another node.
func TestHostileFilesAreRefused(t *testing.T) {
	v := mailboxtest.New(t)
	v.Add("host")
	v.Add("fae")
	good := fileOf("a.txt", "a")
	storeFile(v, "fae", good)
	v.Must("fae", mailbox.PostMessage{To: "HOST", Post: carrying(good)})
	v.Deliver(false)
	with := func(change func(*events.File)) []events.File {
		f := good
		change(&f)
		return []events.File{f}
	}
	for name, files := range map[string][]events.File{
		"no name":      with(func(f *events.File) { f.Name = "" }),
		"path":         with(func(f *events.File) { f.Name = "../../.ssh/id" }),
		"backslash":    with(func(f *events.File) { f.Name = `..\x` }),
		"control":      with(func(f *events.File) { f.Name = "a\x1b[2J" }),
		"zero":         with(func(f *events.File) { f.Name = "a\x00.txt" }),
		"not UTF-8":    with(func(f *events.File) { f.Name = "a\xff" }),
		"long":         with(func(f *events.File) { f.Name = strings.Repeat("x", 256) }),
		"digest":       with(func(f *events.File) { f.Digest = "../x" }),
		"upper digest": with(func(f *events.File) { f.Digest = strings.ToUpper(f.Digest) }),
		"negative":     with(func(f *events.File) { f.Size = -1 }),
		"large":        with(func(f *events.File) { f.Size = mailbox.MaxFile + 1 }),
		"type":         with(func(f *events.File) { f.Type = "text/html\r\nX: y" }),
		"many":         slices.Repeat([]events.File{good}, mailbox.MaxFiles+1),
	} {
		if _, err := v.Decide("fae", mailbox.PostMessage{To: "HOST", Post: carrying(files...)}); parley.CodeOf(err) != parley.InvalidArgument && parley.CodeOf(err) != parley.TooLarge {
			t.Errorf("%s: %v", name, err)
		}
		foreign := *v.Messages("host")[0].Posted
		foreign.Message, foreign.Files = v.NewID(), files
		_, err := v.States["host"].Decide(mailbox.RemoteDelivery{AcceptDelivery: mailbox.AcceptDelivery{Posted: &foreign}}, v.Now, v.NewID)
		if code := parley.CodeOf(err); code != parley.InvalidArgument && code != parley.TooLarge {
			t.Errorf("%s from another node: %v", name, err)
		}
	}
}

func wanted(v *mailboxtest.Harness, name string, f events.File) bool {
	for d := range mailbox.WantedFiles(v.States[name], v.Now) {
		if d == f.Digest {
			return true
		}
	}
	return false
}

// TestFilesAreWantedWhileSomethingRefers follows a file through its life, in the storer's mailbox and the recipient's.
func TestFilesAreWantedWhileSomethingRefers(t *testing.T) {
	const day = capabilities.Time(24 * time.Hour / time.Millisecond)
	v := mailboxtest.New(t)
	v.Add("host")
	v.Add("fae")
	sent, unsent := fileOf("sent.txt", "sent"), fileOf("unsent.txt", "unsent")
	storeFile(v, "fae", sent)
	storeFile(v, "fae", unsent)
	use := func() int64 { return v.States["fae"].Account.Own(v.Now)[quota.Files] }
	if use() != sent.Size+unsent.Size {
		t.Errorf("they count %d bytes", use())
	}
	storeFile(v, "fae", sent)
	if use() != sent.Size+unsent.Size {
		t.Errorf("one counts twice: %d bytes", use())
	}
	v.Must("fae", mailbox.PostMessage{To: "HOST", Post: carrying(sent)})
	v.Deliver(false)
	v.Now += 8 * day
	v.Must("fae", mailbox.DropFiles{})
	if wanted(v, "fae", unsent) || !wanted(v, "fae", sent) || use() != sent.Size {
		t.Errorf("after a week: %v %v, %d bytes", wanted(v, "fae", unsent), wanted(v, "fae", sent), use())
	}
	dismiss := func(name string) {
		m := v.Messages(name)[0]
		v.Must(name, mailbox.DismissMessage{Message: capabilities.FormID(m.ID())})
	}
	dismiss("fae")
	dismiss("host")
	v.Now += 29 * day
	v.Must("fae", mailbox.DropFiles{})
	if !wanted(v, "host", sent) || !wanted(v, "fae", sent) {
		t.Error("it is gone in less than 30 days")
	}
	v.Must("host", mailbox.RestoreMessage{Message: capabilities.FormID(v.Messages("host")[0].ID())})
	v.Now += 2 * day
	v.Must("fae", mailbox.DropFiles{})
	if !wanted(v, "host", sent) || wanted(v, "fae", sent) || use() != 0 {
		t.Errorf("restored with one, and 31 days after with the other: %v %v, %d bytes", wanted(v, "host", sent), wanted(v, "fae", sent), use())
	}
	for name, s := range v.States {
		encoded, err := s.Snapshot()
		if err != nil {
			t.Fatal(err)
		}
		again, err := mailbox.Restore(s.ID, encoded)
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(slices.Sorted(mailbox.WantedFiles(again, v.Now)), slices.Sorted(mailbox.WantedFiles(s, v.Now))) || again.Files.Any() != s.Files.Any() {
			t.Errorf("%s: the snapshot lacks files", name)
		}
	}
}

// TestAnswerWithFile answers a field of type file. The answerer must have stored it, and the asker's mailbox has it then.
func TestAnswerWithFile(t *testing.T) {
	v := mailboxtest.New(t)
	v.Add("host")
	v.Add("fae")
	v.Must("fae", mailbox.RequestForm{Form: parley.Form{To: "HOST", Title: "T", Description: "which?", Fields: []events.Field{{Name: "doc", Type: events.Document, Required: true}}}})
	v.Deliver(false)
	f := fileOf("doc.txt", "doc")
	answer := func() error {
		_, _, err := v.States["host"].DraftAnswer(mailbox.Reply{
			Form: capabilities.FormID(v.Messages("host")[0].ID()), Answer: parley.Answer{Texts: []events.FieldText{{Name: "doc", Text: form.FileText(f)}}},
		}, v.Now, v.NewID)
		return err
	}
	if err := answer(); parley.CodeOf(err) != parley.InvalidAnswer {
		t.Errorf("of a file that is not stored: %v", err)
	}
	storeFile(v, "host", f)
	if err := answer(); err != nil {
		t.Fatal(err)
	}
	c, _, err := v.States["host"].DraftAnswer(mailbox.Reply{
		Form: capabilities.FormID(v.Messages("host")[0].ID()), Answer: parley.Answer{Values: map[string]capabilities.Value{"doc": form.FileValue(f)}},
	}, v.Now, v.NewID)
	if err != nil {
		t.Fatal(err)
	}
	v.Must("fae", c)
	v.Deliver(false)
	got, from, err := mailbox.FileOf(v.States["fae"], v.Messages("fae")[0], f.Digest)
	if err != nil || got != f || from != v.States["host"].ID || !wanted(v, "fae", f) {
		t.Errorf("%+v from %s, %v", got, from, err)
	}
}
