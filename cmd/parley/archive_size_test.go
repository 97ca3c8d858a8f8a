package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"

	"parley/actors"
	"parley/actors/view"
	"parley/events"
)

// archiveTest runs commands on a node whose log is archived.
type archiveTest struct {
	t     *testing.T
	state string
}

// run runs a command, which has to succeed.
func (a archiveTest) run(args ...string) (out, errs string) {
	a.t.Helper()
	out, errs, exit := runTest(a.t.Context(), a.state, nil, args...)
	if exit != 0 {
		a.t.Fatalf("parley %.80q: exit %d, %s", args, exit, errs)
	}
	return out, errs
}

// list returns the archive.
func (a archiveTest) list(args ...string) (l view.Archive) {
	a.t.Helper()
	out, _ := a.run(append([]string{"archive", "--json"}, args...)...)
	if err := json.Unmarshal([]byte(out), &l); err != nil {
		a.t.Fatal(err)
	}
	return l
}

// mailedNode returns the state of a node with mail that can be archived.
func mailedNode(t *testing.T) archiveTest {
	t.Helper()
	a := archiveTest{t, t.TempDir()}
	node, err := actors.Open(t.Context(), actors.Options{Folder: a.state, Name: "test"})
	if err != nil {
		t.Fatal(err)
	}
	_, err = node.Host().Make(t.Context(), actors.NewAgent{Kind: events.Guest, Name: "fae"})
	text := strings.Repeat("a line of a long message\n", 5000)
	for i := 0; i < 75 && err == nil; i++ {
		_, err = node.Host().Send(t.Context(), "fae", fmt.Sprint(i, text))
	}
	if err = errors.Join(err, node.Close(t.Context())); err != nil {
		t.Fatal(err)
	}
	return a
}

// serve runs a part of a test while the node is served.
func (a archiveTest) serve(name string, part func(archiveTest)) {
	a.t.Run(name, func(t *testing.T) {
		serveTest(t, a.state)
		part(archiveTest{t, a.state})
	})
}

// serveS3 runs an S3 server with a bucket, to which the environment leads, as long as the tests run.
var serveS3 = sync.OnceValue(func() error {
	memory := s3mem.New()
	if err := memory.CreateBucket("logs"); err != nil {
		return err
	}
	s := httptest.NewServer(gofakes3.New(memory).Server())
	var errs []error
	for name, value := range map[string]string{
		"AWS_ENDPOINT_URL_S3": s.URL, "AWS_REGION": "us-east-1", "AWS_ACCESS_KEY_ID": "key", "AWS_SECRET_ACCESS_KEY": "secret", "AWS_SESSION_TOKEN": "",
	} {
		errs = append(errs, os.Setenv(name, value))
	}
	return errors.Join(errs...)
})

func TestSegmentsMoveToABucketAndBack(t *testing.T) {
	t.Parallel()
	if err := serveS3(); err != nil {
		t.Fatal(err)
	}
	a := mailedNode(t)
	a.serve("move", func(a archiveTest) {
		moved := a.list("--before", "0s", "--to", "s3://logs/parley")
		if moved.New == 0 || len(moved.Segments) == 0 {
			a.t.Errorf("archived %+v", moved)
		}
		for _, s := range moved.Segments {
			if s.Here || s.Place != "s3://logs/parley" {
				a.t.Errorf("the segment is %+v", s)
			}
		}
		if out, _ := a.run("archive", "--list"); !strings.Contains(out, "s3://logs/parley") {
			a.t.Errorf("the list is %s", out)
		}
	})
	a.serve("read and fetch", func(a archiveTest) {
		short, note := a.run("log")
		if !strings.Contains(note, "are in the archive: parley log --archive\n") {
			a.t.Errorf("the log says %q", note)
		}
		part, note := a.run("log", "--archive")
		if part != short || !strings.Contains(note, "which is elsewhere: parley log archive --fetch 1 brings it back from s3://logs/parley") {
			a.t.Errorf("the log has %d bytes, want %d, and says %q", len(part), len(short), note)
		}
		for _, command := range [][]string{{"log", "--json"}, {"log", "--archive", "--json"}} {
			if lines, _ := a.run(command...); !strings.HasPrefix(lines, `{"archived":{"first":1,`) {
				a.t.Errorf("the log is %.200s", lines)
			}
		}
		rows, _ := a.run("inbox", "--all")
		if !strings.HasPrefix(rows, "0. you sent a message from ") {
			a.t.Errorf("the inbox is %.2000s", rows)
		}
		if out, errs, exit := runTest(a.t.Context(), a.state, nil, "show", "0"); exit == 0 || !strings.Contains(errs, "ARCHIVED") || !strings.Contains(errs, "s3://logs/parley") {
			a.t.Errorf("exit %d: %.200s %s", exit, out, errs)
		}
		a.run("verify")

		for _, s := range a.list("--fetch").Segments {
			if !s.Here {
				a.t.Errorf("the segment is %+v", s)
			}
		}
		whole, _ := a.run("log", "--archive")
		if first, _, _ := strings.Cut(whole, "\n"); !strings.HasPrefix(first, "1 1 ") || !strings.HasSuffix(whole, short) || len(whole) == len(short) {
			a.t.Errorf("the log has %d of %d bytes, and begins with %.200q", len(short), len(whole), first)
		}
		if inbox, _ := a.run("inbox", "--all"); strings.Count(rows, "\n") != strings.Count(inbox, "\n") || strings.Contains(inbox, "elsewhere") {
			a.t.Errorf("the inbox is %.2000s", inbox)
		}
	})
}
