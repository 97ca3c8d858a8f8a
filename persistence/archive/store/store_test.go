package store

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"

	"parley"
)

// s3Server is an S3 server whose answers a test can spoil.
type s3Server struct {
	*httptest.Server
	spoil atomic.Pointer[func(w http.ResponseWriter, r *http.Request, next http.Handler)]
}

// serveS3 starts an S3 server with a bucket, to which the environment leads.
func serveS3(t testing.TB) *s3Server {
	t.Helper()
	memory := s3mem.New()
	if err := memory.CreateBucket("logs"); err != nil {
		t.Fatal(err)
	}
	next := gofakes3.New(memory).Server()
	s := &s3Server{}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if spoil := s.spoil.Load(); spoil != nil {
			(*spoil)(w, r, next)
			return
		}
		next.ServeHTTP(w, r)
	}))
	t.Cleanup(s.Close)
	for name, value := range map[string]string{
		"AWS_ENDPOINT_URL_S3": s.URL, "AWS_REGION": "us-east-1", "AWS_ACCESS_KEY_ID": "key", "AWS_SECRET_ACCESS_KEY": "secret", "AWS_SESSION_TOKEN": "",
	} {
		t.Setenv(name, value)
	}
	return s
}

func (s *s3Server) spoilWith(f func(w http.ResponseWriter, r *http.Request, next http.Handler)) {
	s.spoil.Store(&f)
}

func openStore(t testing.TB, destination string) Store {
	t.Helper()
	s, err := Open(destination)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func content(n int) *bytes.Reader {
	return bytes.NewReader(bytes.Repeat([]byte("0123456789abcdef"), n/16))
}

func TestStores(t *testing.T) {
	serveS3(t)
	t.Run("folder", func(t *testing.T) { conform(t, filepath.Join(t.TempDir(), "deep", "archive")) })
	t.Run("bucket", func(t *testing.T) { conform(t, "s3://logs") })
	t.Run("prefix", func(t *testing.T) { conform(t, "s3://logs/some/where") })
}

// conform checks what each store promises.
func conform(t *testing.T, destination string) {
	s := openStore(t, destination)
	if s.String() != destination {
		t.Errorf("it is called %s", s)
	}
	ctx := t.Context()
	if _, err := s.Size(ctx, "node/1"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the size of no file: %v", err)
	}
	if err := s.Get(ctx, "node/1", 10, io.Discard); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no file: %v", err)
	}
	if names, err := s.List(ctx, "node"); err != nil || len(names) > 0 {
		t.Errorf("nothing is %q, %v", names, err)
	}
	const size = 6 << 20
	for _, name := range []string{"node/2", "node/1", "other/1"} {
		if err := Copy(ctx, s, name, content(size), size); err != nil {
			t.Fatal(err)
		}
	}
	if n, err := s.Size(ctx, "node/1"); err != nil || n != size {
		t.Errorf("a size of %d: %v", n, err)
	}
	if names, err := s.List(ctx, "node"); err != nil || !slices.Equal(names, []string{"node/1", "node/2"}) {
		t.Errorf("it has %q, %v", names, err)
	}
	if err := Copy(ctx, s, "node/1", content(size), size); err != nil {
		t.Errorf("once more: %v", err)
	}
	for _, other := range []*bytes.Reader{content(16), bytes.NewReader(make([]byte, size))} {
		if err := Copy(ctx, s, "node/1", other, other.Size()); parley.CodeOf(err) != parley.InvalidArgument {
			t.Errorf("another file of that name: %v", err)
		}
	}
	back := filepath.Join(t.TempDir(), "file")
	if err := Fetch(ctx, s, "node/1", back, size); err != nil {
		t.Fatal(err)
	}
	want, _ := io.ReadAll(content(size))
	if got, err := os.ReadFile(back); err != nil || !bytes.Equal(got, want) {
		t.Errorf("another content came back: %v", err)
	}
	for name, limit := range map[string]int64{"node/1": size - 1, "node/3": size} {
		if err := Fetch(ctx, s, name, back, limit); err == nil {
			t.Errorf("%s of at most %d bytes was fetched", name, limit)
		}
		if _, err := os.Stat(back); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("what was fetched of %s is left: %v", name, err)
		}
	}
	ended, cancel := context.WithCancel(ctx)
	cancel()
	if err := Copy(ended, s, "node/4", content(size), size); !errors.Is(err, context.Canceled) {
		t.Errorf("after the end: %v", err)
	}
	if _, err := s.Size(ctx, "node/4"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("it is there after the end: %v", err)
	}
}

func TestOpenRefusesOtherPlaces(t *testing.T) {
	for _, destination := range []string{"", "here", "ftp://host/x", "s3://", "s3:///x", "s3://UPPER_/x", "s3://logs/../x"} {
		if s, err := Open(destination); parley.CodeOf(err) != parley.InvalidArgument {
			t.Errorf("%q is %v, %v", destination, s, err)
		}
	}
	t.Setenv("AWS_ENDPOINT_URL_S3", "host:9000")
	if s, err := Open("s3://logs"); parley.CodeOf(err) != parley.InvalidArgument {
		t.Errorf("an address without a scheme: %v, %v", s, err)
	}
}

// flipping changes a byte of what it writes.
type flipping struct {
	http.ResponseWriter
	done bool
}

// Write implements io.Writer.
func (f *flipping) Write(b []byte) (int, error) {
	if len(b) > 100 && !f.done {
		b, f.done = bytes.Clone(b), true
		b[99] ^= 1
	}
	return f.ResponseWriter.Write(b)
}

func TestALyingServerIsFound(t *testing.T) {
	server := serveS3(t)
	s := openStore(t, "s3://logs/x")
	ways := map[string]func(w http.ResponseWriter, r *http.Request, next http.Handler){
		"it keeps something else": func(w http.ResponseWriter, r *http.Request, next http.Handler) {
			if r.Method == http.MethodGet {
				w = &flipping{ResponseWriter: w}
			}
			next.ServeHTTP(w, r)
		},
		"it keeps nothing": func(w http.ResponseWriter, r *http.Request, next http.Handler) {
			if r.Method == http.MethodPut {
				_, _ = io.Copy(io.Discard, r.Body)
				w.Header().Set("ETag", `"d41d8cd98f00b204e9800998ecf8427e"`)
				return
			}
			next.ServeHTTP(w, r)
		},
		"it refuses": func(w http.ResponseWriter, _ *http.Request, _ http.Handler) { w.WriteHeader(http.StatusForbidden) },
	}
	for name, way := range ways {
		server.spoilWith(way)
		err := Copy(t.Context(), s, strings.ReplaceAll(name, " ", "-"), content(1<<20), 1<<20)
		if parley.CodeOf(err) != parley.NodeUnreachable {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestADyingServerLeavesNoHalfFile(t *testing.T) {
	server := serveS3(t)
	s := openStore(t, "s3://logs")
	server.spoilWith(func(w http.ResponseWriter, r *http.Request, next http.Handler) {
		if r.Method != http.MethodPut {
			next.ServeHTTP(w, r)
			return
		}
		_, _ = io.CopyN(io.Discard, r.Body, 1000)
		panic(http.ErrAbortHandler) // it closes the connection
	})
	if err := Copy(t.Context(), s, "a", content(1<<20), 1<<20); parley.CodeOf(err) != parley.NodeUnreachable {
		t.Errorf("a server that dies: %v", err)
	}
	server.spoil.Store(nil)
	if _, err := s.Size(t.Context(), "a"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("half a file: %v", err)
	}
	if err := Copy(t.Context(), s, "a", content(1<<20), 1<<20); err != nil {
		t.Errorf("afterwards: %v", err)
	}
	server.spoilWith(func(w http.ResponseWriter, r *http.Request, next http.Handler) {
		if r.Method == http.MethodGet {
			w.Header().Set("Content-Length", "1048576")
			w.Header().Set("Last-Modified", "Mon, 02 Jan 2006 15:04:05 GMT")
			w.Header().Set("ETag", `"x"`)
			_, _ = w.Write(make([]byte, 1000))
			panic(http.ErrAbortHandler)
		}
		next.ServeHTTP(w, r)
	})
	path := filepath.Join(t.TempDir(), "a")
	if err := Fetch(t.Context(), s, "a", path, 1<<20); parley.CodeOf(err) != parley.NodeUnreachable {
		t.Errorf("a server that dies while it is read: %v", err)
	}
	if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("half a file was fetched: %v", err)
	}
}

func TestASlowServerEndsWithTheContext(t *testing.T) {
	server := serveS3(t)
	s := openStore(t, "s3://logs")
	if err := Copy(t.Context(), s, "a", content(1<<20), 1<<20); err != nil {
		t.Fatal(err)
	}
	for _, method := range []string{http.MethodHead, http.MethodGet, http.MethodPut} {
		ctx, cancel := context.WithCancel(t.Context())
		server.spoilWith(func(w http.ResponseWriter, r *http.Request, next http.Handler) {
			if r.Method == method {
				_, _ = io.CopyN(io.Discard, r.Body, 1000)
				cancel()
				_, _ = io.Copy(io.Discard, r.Body) // the server sees the end of a connection only after its body
				<-r.Context().Done()
				return
			}
			next.ServeHTTP(w, r)
		})
		name := "a"
		if method == http.MethodPut {
			name = "b"
		}
		if err := Copy(ctx, s, name, content(1<<20), 1<<20); !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v", method, err)
		}
		cancel()
	}
}
