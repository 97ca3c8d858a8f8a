package client

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// TestLongCallOutlivesTurn has a node answer a long call only after it has kept a short one waiting for too long.
func TestLongCallOutlivesTurn(t *testing.T) {
	t.Parallel()
	gaveUp := make(chan struct{})
	node := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // the server looks whether a client has gone only then
		if !strings.HasSuffix(r.URL.Path, "/archive_journal") {
			<-r.Context().Done()
			return
		}
		<-gaveUp
		_, _ = w.Write([]byte(`{}`))
	}))
	defer node.Close()
	w, err := newWeb(Options{URL: node.URL})
	if err != nil {
		t.Fatal(err)
	}
	w.turn = time.Millisecond
	long := make(chan error, 1)
	go func() {
		_, err := w.exchange(t.Context(), "archive_journal", []byte{0x80})
		long <- err
	}()
	_, err = w.exchange(t.Context(), "fetch_inbox", []byte{0x80})
	if e, ok := errors.AsType[*lost](err); !ok || errors.Is(e, context.Canceled) {
		t.Errorf("a call that is not answered: %v", err)
	}
	close(gaveUp)
	if err := <-long; err != nil {
		t.Errorf("a long call: %v", err)
	}
}
