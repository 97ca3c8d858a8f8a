package api

import (
	"context"
	"errors"
	"strings"
	"testing"

	"parley"
	"parley/capabilities"
)

// testAccount counts its places in use, and refuses more of a kind than its limit.
type testAccount struct {
	limit    map[Kind]int64
	taken    [Kinds]int64
	building int
	built    int
}

func (a *testAccount) Pace() error { return nil }

func (a *testAccount) Take(k Kind, n int64) error {
	if limit, ok := a.limit[k]; ok && a.taken[k]+n > limit {
		return parley.Refuse(parley.RateLimited, "no room")
	}
	a.taken[k] += n
	return nil
}

func (a *testAccount) Force(k Kind, n int64) { a.taken[k] += n }

func (a *testAccount) Give(k Kind, n int64) { a.taken[k] -= n }

func (a *testAccount) Build(ctx context.Context) (built func(), err error) {
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	a.building++
	a.built++
	return func() { a.building-- }, nil
}

func (a *testAccount) BuildReady(ctx context.Context) (built func(), err error) { return a.Build(ctx) }

func (a *testAccount) InTurn(_ context.Context, work func() error) error { return work() }

// testPrincipal is a principal without a node.
type testPrincipal struct {
	Principal
	account *testAccount
}

func (p testPrincipal) Account() Account    { return p.account }
func (p testPrincipal) ID() capabilities.ID { return capabilities.ID{} }

// callerFunc adapts a function to a caller.
type callerFunc func(operation string, r Request) (any, error)

func (f callerFunc) Lister(_ context.Context, p Principal, _ Request) Account { return p.Account() }

func (f callerFunc) Call(_ context.Context, _ Principal, operation string, r Request) (any, error) {
	return f(operation, r)
}

func TestServeReleasesPlaces(t *testing.T) {
	refused := parley.Refuse(parley.NotPermitted, "no")
	for name, x := range map[string]struct {
		operation Operation
		limit     map[Kind]int64
		err       error // of the call
		encode    error
		size      int
		ended     bool // the context, before
		want      parley.Code
		charged   int64
		built     int
	}{
		"a small response":          {operation: Operation{Scope: ScopeAsk}, size: 100},
		"a large response":          {operation: Operation{Scope: ScopeRead}, size: PieceSize + 1, charged: PieceSize + 1},
		"too large to be read":      {operation: Operation{Scope: ScopeRead}, size: PieceSize + 1, limit: map[Kind]int64{KindMemory: 10}, want: parley.RateLimited},
		"too large, but it is done": {operation: Operation{Scope: ScopeAsk}, size: PieceSize + 1, limit: map[Kind]int64{KindMemory: 10}, charged: PieceSize + 1},
		"no place":                  {operation: Operation{}, limit: map[Kind]int64{KindCalls: 0}, want: parley.RateLimited},
		"no place to wait":          {operation: Operation{Waits: true}, limit: map[Kind]int64{KindWaits: 0}, want: parley.RateLimited},
		"a wait is no call":         {operation: Operation{Waits: true, Scope: ScopeRead}, limit: map[Kind]int64{KindCalls: 0}},
		"a refusal":                 {operation: Operation{Lists: true}, err: refused, want: parley.NotPermitted, built: 1},
		"a list":                    {operation: Operation{Lists: true, Scope: ScopeRead}, size: 5, built: 1},
		"a list that waits":         {operation: Operation{Lists: true, Waits: true, Scope: ScopeRead}, size: 5, built: 1},
		"a wait that is refused":    {operation: Operation{Lists: true, Waits: true}, err: refused, want: parley.NotPermitted},
		"a list that is given up":   {operation: Operation{Lists: true}, ended: true, want: parley.Internal},
		"no JSON":                   {operation: Operation{Lists: true}, encode: errors.New("no JSON"), want: parley.Internal, built: 1},
	} {
		t.Run(name, func(t *testing.T) {
			account := &testAccount{limit: x.limit}
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			if x.ended {
				cancel()
			}
			held := ChargeOf(account)
			call := callerFunc(func(string, Request) (any, error) { return Done{}, x.err })
			err := Serve(ctx, call, testPrincipal{account: account}, x.operation, JSON(nil), held, func(any) (int, error) { return x.size, x.encode })
			if parley.CodeOf(err) != x.want {
				t.Errorf("%v, want %q", err, x.want)
			}
			if held.Bytes() != x.charged || account.taken[KindMemory] != x.charged {
				t.Errorf("%d bytes are charged, and %d taken, want %d", held.Bytes(), account.taken[KindMemory], x.charged)
			}
			held.Release()
			held.Release() // a second call does nothing
			if account.taken != [Kinds]int64{} {
				t.Errorf("%v stay taken", account.taken)
			}
			if account.building != 0 || account.built != x.built {
				t.Errorf("%d listings were built, %d are being built", account.built, account.building)
			}
		})
	}
}

func TestRefusedChargeIsNotCharged(t *testing.T) {
	account := &testAccount{limit: map[Kind]int64{KindMemory: 10}}
	held := ChargeOf(account)
	if err := held.Add(7); err != nil {
		t.Fatal(err)
	}
	if err := held.Add(7); parley.CodeOf(err) != parley.RateLimited || held.Bytes() != 7 {
		t.Errorf("%v, with %d bytes", err, held.Bytes())
	}
	held.Force(7)
	if held.Bytes() != 14 || account.taken[KindMemory] != 14 {
		t.Errorf("%d bytes", held.Bytes())
	}
	held.Release()
	if account.taken[KindMemory] != 0 {
		t.Errorf("%d bytes stay", account.taken[KindMemory])
	}
}

func TestTypedRequestsKeepTheirType(t *testing.T) {
	var r NameRequest
	if err := (Typed{NameRequest{Name: "fae"}}).Read(&r); err != nil || r.Name != "fae" {
		t.Errorf("%+v %v", r, err)
	}
	for _, value := range []any{LookupRequest{Name: "fae"}, &NameRequest{}, "fae", nil} {
		if err := (Typed{value}).Read(&r); err == nil || !strings.Contains(err.Error(), "NameRequest") {
			t.Errorf("a %T is read as a NameRequest: %v", value, err)
		}
	}
}

func TestUntilStoppingReportsItsCause(t *testing.T) {
	stopping, stop := context.WithCancel(t.Context())
	ctx, cancel := UntilStopping(t.Context(), stopping)
	defer cancel()
	stop()
	<-ctx.Done()
	if err := context.Cause(ctx); err != ErrStopping {
		t.Errorf("it ended with %v", err)
	}
	ctx, cancel = UntilStopping(t.Context(), t.Context())
	cancel()
	<-ctx.Done()
	if err := context.Cause(ctx); parley.CodeOf(err) == parley.NotRunning {
		t.Errorf("it ended with %v", err)
	}
}

func TestBearerOf(t *testing.T) {
	for header, want := range map[string]string{
		"": "", "Bearer x": "x", "Bearer  x ": "x", "bearer x": "", "Basic x": "", "Bearer": "", "Bearer ": "", "x Bearer x": "",
	} {
		if got := BearerOf(header); got != want {
			t.Errorf("%q: %q, want %q", header, got, want)
		}
	}
}
