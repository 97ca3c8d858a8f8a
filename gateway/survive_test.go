package gateway

import (
	"context"
	"log/slog"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	sdk "github.com/a2aproject/a2a-go/v2/a2a"

	"parley"
	"parley/actors"
	"parley/events"
	"parley/gateway/a2a"
	"parley/gateway/api"
	"parley/gateway/bridge"
	"parley/internal/eventually"
)

// crashingReceiver is a receiver of a bridge. It panics at its first notice, and its listening panics each time.
type crashingReceiver struct {
	form     atomic.Pointer[string] // of which it panics
	listened atomic.Int32
	told     chan string
}

func (r *crashingReceiver) Tell(_ context.Context, n bridge.Notice) (string, error) {
	form := n.Form.String()
	if r.form.CompareAndSwap(nil, &form) || *r.form.Load() == form {
		panic("for the test")
	}
	r.told <- form
	return "", nil
}

func (r *crashingReceiver) Withdraw(context.Context, bridge.Notice) error { return nil }
func (r *crashingReceiver) Settle(context.Context, bridge.Notice) error   { return nil }
func (r *crashingReceiver) Fits(bridge.Notice) bool                       { return true }
func (r *crashingReceiver) Listen(context.Context, bridge.Host) {
	r.listened.Add(1)
	panic("for the test")
}

func TestBridgeCrashLeavesOthersAtWork(t *testing.T) {
	t.Parallel()
	h := openTestServer(t)
	fae := h.guest("fae")
	r := &crashingReceiver{told: make(chan string, 1)}
	w, err := bridge.NewWorker(bridge.Options{
		Name: "crash", Backend: h.server.backend, Acting: h.server.backend.Person, Receiver: r, Base: func() string { return "" },
		File: filepath.Join(h.folder, "bridge-crash.json"), Log: slog.New(slog.DiscardHandler), Now: time.Now,
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- w.Run(ctx) }()
	first := askFrom(t, fae, "first")
	eventually.Holds(t, "both crash", func() bool { return r.form.Load() != nil && r.listened.Load() == 1 })
	second := askFrom(t, fae, "second")
	if told := <-r.told; *r.form.Load() != first || told != second {
		t.Errorf("crashed at %s and told of %s, want %s and %s", *r.form.Load(), told, first, second)
	}
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// askFrom has an agent ask the host, and returns the form.
func askFrom(t *testing.T, a *actors.Agent, text string) string {
	t.Helper()
	asked, err := a.Ask(t.Context(), parley.Form{To: "HOST", Description: text, Fields: []events.Field{{Name: "a"}}})
	if err != nil {
		t.Fatal(err)
	}
	return asked.Form.String()
}

func TestA2APushCrashLeavesOthersAtWork(t *testing.T) {
	t.Parallel()
	h, place := openPushing(t), newPushPlace(t)
	bob := h.guest("bob")
	h.guest("fae")
	var crashes atomic.Int32
	h.close()
	h.open(func(s *Server) {
		network, err := bridge.ParseNetwork(string(h.network))
		if err != nil {
			t.Fatal(err)
		}
		s.a2a, err = a2a.New(a2a.Options{
			Version: "test", Pushes: filepath.Join(h.folder, "a2a-push"), Network: network, Log: slog.New(slog.DiscardHandler), Now: time.Now,
			Resume: func(ctx context.Context, of events.TokenRef) (a2a.Client, error) {
				if of.Agent == bob.ID() {
					crashes.Add(1)
					panic("for the test")
				}
				p, err := s.backend.Resume(ctx, of)
				return &toolUser{s, p}, err
			},
		})
		if err != nil {
			t.Fatal(err)
		}
	})
	for _, name := range []string{"bob", "fae"} {
		c := h.a2aClient(name, sdk.TransportProtocolJSONRPC)
		begun := a2aSend(t, c, sdk.NewMessage(sdk.MessageRoleUser, sdk.NewTextPart("Deploy")))
		if _, err := c.CreateTaskPushConfig(t.Context(), &sdk.PushConfig{TaskID: begun.ID, URL: place.URL}); err != nil {
			t.Fatal(err)
		}
	}
	eventually.Holds(t, "it crashes", func() bool { return crashes.Load() > 0 })
	answerLast(t, h.node.Host(), "answer", "Done.")
	place.last(t, sdk.TaskStateCompleted)
	eventually.Holds(t, "only the configuration that crashed is kept", func() bool { return len(h.keptPushes()) == 1 })
}

// crashingBackend is a Backend that panics for an agent of the name "crash".
type crashingBackend struct{ api.Backend }

func (b crashingBackend) Agent(ctx context.Context, p api.Principal, as string) (api.Agent, error) {
	if as == "crash" {
		panic("for the test")
	}
	return b.Backend.Agent(ctx, p, as)
}

func TestStreamCrashLeavesOthersAtWork(t *testing.T) {
	t.Parallel()
	h := openPageServer(t)
	h.server.site.Backend = crashingBackend{h.server.site.Backend}
	for _, query := range []string{"?output=crash", following("0:crash")} {
		l := h.openStream(query, "")
		if l.status != 200 {
			t.Fatal(l.status)
		}
		if e, more := l.next("none"); more {
			t.Errorf("%s: %+v", query, e)
		}
	}
	l := h.openStream(following("0:fae"), "")
	if _, err := h.fae.Send(t.Context(), "@self", "hello"); err != nil {
		t.Fatal(err)
	}
	if c := l.change(); len(c.Messages) != 1 {
		t.Errorf("%+v", c)
	}
}
