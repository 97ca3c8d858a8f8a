package coding

import (
	"context"
	"fmt"
	"path/filepath"
	"time"

	"parley/actors"
	"parley/actors/view"
	"parley/capabilities"
	"parley/gateway/api"
	"parley/internal/realpath"
	"parley/mailbox/lease"
)

// Bounds of what a session is told of leases.
const (
	maxToldLeases = 8                // that are named
	toldAgain     = 30 * time.Second // between two times between calls, so that who leases and releases at will costs a model little
)

// LeaseNews returns the leases of others on files of the folder of an agent's session, if they are others than those that it was told of
// last. At a start all are news: the conversation may be another. It returns nil for no news.
func (l *Sessions) LeaseNews(ctx context.Context, agent capabilities.ID, folder string, m api.MailMoment) (*api.LeaseNews, error) {
	s := l.of(agent)
	if s == nil || !filepath.IsAbs(folder) || m.Moment != api.MomentStart && m.Moment != api.MomentPrompt && m.Moment != api.MomentCalls {
		return nil, nil
	}
	all, err := actors.LeasesOf(l.agent(agent)).List(ctx)
	if err != nil {
		return nil, err
	}
	whole := lease.Tree(filepath.ToSlash(realpath.Of(folder)))
	news, which := &api.LeaseNews{}, ""
	for _, one := range all.Leases {
		if one.Own || one.State != view.LeaseHeld || !concerns(one, whole) {
			continue
		}
		which += fmt.Sprintf("%d ", one.Lease)
		if len(news.Leases) == maxToldLeases {
			news.More++
			continue
		}
		one.For, one.Title = "", "" // the holder's words
		news.Leases = append(news.Leases, one)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	switch {
	case which == "" && s.leases == "":
		return nil, nil
	case m.Moment == api.MomentStart:
	case which == s.leases, m.Moment == api.MomentCalls && now.Sub(s.toldLeases) < toldAgain:
		return nil, nil
	}
	s.leases, s.toldLeases = which, now
	return news, nil
}

// concerns reports whether a lease is on files of a folder.
func concerns(one view.Lease, folder lease.Pattern) bool {
	for _, p := range one.Patterns {
		if p := lease.Pattern(p); !p.IsName() && p.Overlaps(folder, false) {
			return true
		}
	}
	return false
}
