package actors

import (
	"context"

	"parley/capabilities"
	"parley/mailbox"
)

// Version is how many events the agent's mailbox has.
func (a *Agent) Version(ctx context.Context) (uint64, error) {
	return query(ctx, a, func(s *mailbox.State, _ capabilities.Time) (uint64, error) { return s.Version, nil })
}

// Beyond waits until the agent's mailbox has come beyond a version, whatever happened to it, and gives the version
// that it has then. When ctx ends first, it gives the same version, and no error.
func (a *Agent) Beyond(ctx context.Context, version uint64) (uint64, error) {
	changed := make(chan struct{}, 1)
	a.node.changed.add(a.id, changed)
	defer a.node.changed.drop(a.id, changed)
	for {
		now, err := a.Version(ctx)
		if ctx.Err() != nil {
			return version, nil
		}
		if err != nil || now > version {
			return now, err
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return version, nil
		case <-a.node.life.Done():
			return version, errClosing()
		}
	}
}
