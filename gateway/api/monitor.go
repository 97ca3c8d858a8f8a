package api

import (
	"context"
	"fmt"
	"log/slog"
	"runtime/debug"
	"time"

	"parley"
)

// Monitor counts the calls of an edge and logs their failures. It never logs the content of a call.
type Monitor struct {
	Log   *slog.Logger
	Count func(operation string, err error) // counts a call that has ended
}

// Ended counts a call and notes it.
func (m Monitor) Ended(ctx context.Context, operation string, err error, started time.Time) {
	m.Count(operation, err)
	if !m.Log.Enabled(ctx, slog.LevelDebug) {
		return
	}
	m.Log.LogAttrs(ctx, slog.LevelDebug, "call", slog.String("operation", operation),
		slog.String("code", string(parley.CodeOf(err))), slog.Duration("took", time.Since(started)))
}

// Failed logs an error that clients do not see.
func (m Monitor) Failed(ctx context.Context, operation string, err error) {
	if err != nil && parley.CodeOf(err) == parley.Internal && !IsContextEnd(err) {
		m.Log.LogAttrs(ctx, slog.LevelError, "operation failed", slog.String("operation", operation), slog.Any("error", err))
	}
}

// Panicked logs a panic of one call, and returns the error for its caller.
func (m Monitor) Panicked(operation string, p any) error {
	m.Log.Error("operation panicked", "operation", operation, "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
	return parley.Refuse(parley.Internal, "internal error").WithHint("the node's log has the details")
}

// Survive turns a panic of one call into its INTERNAL error, so that other calls go on.
func (m Monitor) Survive(name string, do func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = m.Panicked(name, p)
		}
	}()
	return do()
}
