package store

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"path"
	"slices"
	"strings"
	"testing"
	"time"
)

const listed = `<?xml version="1.0" encoding="UTF-8"?><ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/">`

// page returns a page of a listing with a key for each name.
func page(more string, names ...string) string {
	var b strings.Builder
	b.WriteString(listed + more)
	for _, name := range names {
		fmt.Fprintf(&b, `<Contents><Key>%s</Key><Size>1</Size></Contents>`, name)
	}
	return b.String() + `</ListBucketResult>`
}

// FuzzListing lists a bucket whose server answers anything. Names are in the folder, sorted, once each, and can be names.
func FuzzListing(f *testing.F) {
	server := serveS3(f)
	s := openStore(f, "s3://logs/x")
	for _, answer := range []string{
		page("", "x/node/1", "x/node/2"), page("", "x/node/../../1", "x/node//", "y/1", "x/node/a&#10;b", "x/other/1"), page("", "x/node/2", "x/node/1", "x/node/1"),
		page("<IsTruncated>true</IsTruncated>", "x/node/1"), page("<IsTruncated>true</IsTruncated><NextContinuationToken>n</NextContinuationToken>", "x/node/1"),
		listed, "", "{}", `<Error><Code>NoSuchKey</Code></Error>`,
	} {
		f.Add(true, answer)
	}
	f.Add(false, `<Error><Code>NoSuchBucket</Code></Error>`)
	f.Add(false, page("", "x/node/1"))
	var status int
	var answer string
	pages := 0
	server.spoilWith(func(w http.ResponseWriter, _ *http.Request, _ http.Handler) {
		if pages++; pages > 2 { // such a server would go on for ever
			w.WriteHeader(http.StatusForbidden)
			return
		}
		w.WriteHeader(status)
		_, _ = w.Write([]byte(answer)) // the error is that of a client that has gone away
	})
	f.Fuzz(func(t *testing.T, ok bool, text string) {
		status, answer, pages = http.StatusNotFound, text, 0
		if ok {
			status = http.StatusOK
		}
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		names, err := s.List(ctx, "node")
		if ctx.Err() != nil {
			t.Fatal("it goes on")
		}
		if err != nil && names != nil {
			t.Errorf("%q, and %v", names, err)
		}
		for _, name := range names {
			if !fs.ValidPath(name) || path.Dir(name) != "node" {
				t.Errorf("a name is %q", name)
			}
		}
		if !slices.IsSorted(names) || len(slices.Compact(slices.Clone(names))) != len(names) {
			t.Errorf("the names are %q", names)
		}
	})
}

// TestEndlessListingEnds lists a bucket whose server always has another page.
func TestEndlessListingEnds(t *testing.T) {
	server := serveS3(t)
	names := make([]string, 1000)
	n := 0
	server.spoilWith(func(w http.ResponseWriter, _ *http.Request, _ http.Handler) {
		for i := range names {
			names[i] = fmt.Sprint("x/node/", n)
			n++
		}
		text := page(fmt.Sprintf("<IsTruncated>true</IsTruncated><NextContinuationToken>%d</NextContinuationToken>", n), names...)
		_, _ = w.Write([]byte(text)) // the error is that of a client that has gone away
	})
	s := openStore(t, "s3://logs/x").(*s3)
	s.most, s.pages.most = 1500, 256<<10
	if names, err := s.List(t.Context(), "node"); !errors.Is(err, errTooMany) {
		t.Errorf("%d names, %v", len(names), err)
	}
	server.spoilWith(func(w http.ResponseWriter, r *http.Request, _ http.Handler) {
		_, err := w.Write([]byte(listed + "<Contents><Key>"))
		for key := bytes.Repeat([]byte("x"), 64<<10); err == nil && r.Context().Err() == nil; { // one key, without an end
			_, err = w.Write(key)
		}
	})
	if names, err := s.List(t.Context(), "node"); !errors.Is(err, errTooMany) {
		t.Errorf("%d names of one page, %v", len(names), err)
	}
}
