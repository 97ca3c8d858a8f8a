package backend

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"parley"
	"parley/actors"
	"parley/actors/view"
	"parley/gateway/api"
	"parley/gateway/people"
	"parley/gateway/writing"
	"parley/internal/realpath"
	"parley/mailbox"
	"parley/mailbox/lease"
)

// defaultLease is how long a lease is held that does not say it.
const defaultLease = 30 * time.Minute

// milliseconds returns a time of a request; a longer one than can be told is refused later, as too long.
func milliseconds(ms int64) time.Duration {
	const most = int64(1<<62) / int64(time.Millisecond)
	return time.Duration(min(max(ms, -most), most)) * time.Millisecond
}

func lengthOf(ttlMs int64) time.Duration {
	if ttlMs == 0 {
		return defaultLease
	}
	return milliseconds(ttlMs)
}

func askLease(ctx context.Context, a *actors.Agent, r api.LeaseRequest) (view.Lease, error) {
	c := mailbox.AskLease{Team: r.Team, Shared: r.Shared, For: r.For, Length: lengthOf(r.TTLMs), Wait: milliseconds(r.WaitMs)}
	if len(r.Patterns) > lease.MaxPatterns {
		return view.Lease{}, parley.Refuse(parley.TooLarge, "%d patterns are over the limit of %d", len(r.Patterns), lease.MaxPatterns).WithHint("ask for several leases")
	}
	if r.Folder != "" && (!filepath.IsAbs(r.Folder) || len(r.Folder) > maxFolder) {
		return view.Lease{}, parley.Refuse(parley.InvalidArgument, "the folder of a lease is an absolute path of %d bytes at most", maxFolder)
	}
	own, err := folderOf(ctx, a)
	if err != nil {
		return view.Lease{}, err
	}
	folder := r.Folder
	if folder == "" {
		folder = own
	}
	for _, text := range r.Patterns {
		p, folds, err := readPattern(text, folder)
		if err != nil {
			return view.Lease{}, err
		}
		if own != "" && !p.IsName() && !p.Below(own) {
			return view.Lease{}, parley.Refuse(parley.NotPermitted, "%s is outside of %s, in which this coding agent works", parley.Quoted(string(p), 200), parley.Quoted(own, 200)).
				WithHint("lease files of its folder; the host leases others")
		}
		if !slices.Contains(c.Patterns, string(p)) {
			c.Patterns = append(c.Patterns, string(p))
		}
		c.Fold = c.Fold || folds
	}
	return actors.LeasesOf(a).Ask(ctx, c)
}

// readPattern reads a pattern as it is compared: the files that are there have one name each, whatever links lead to them.
func readPattern(text, folder string) (p lease.Pattern, folds bool, err error) {
	if p, err = lease.Parse(text, filepath.ToSlash(folder)); err != nil || p.IsName() {
		return p, false, err
	}
	at, rest := p.Cut()
	real := realpath.Of(filepath.FromSlash(at))
	whole := folder
	if whole != "" {
		whole = realpath.Of(folder)
	}
	p, err = lease.Parse(strings.TrimSuffix(filepath.ToSlash(real)+"/"+rest, "/"), filepath.ToSlash(whole))
	return p, realpath.FoldsCase(real), err
}

// folderOf returns the folder that a coding agent works in, with slashes: outside of it, it leases no files. It is "" for any other
// agent, and for a folder that is too long for a label.
func folderOf(ctx context.Context, a *actors.Agent) (string, error) {
	status, err := a.Status(ctx)
	if folder := status.Labels[people.LabelFolder]; err == nil && status.Maker == status.Host && filepath.IsAbs(folder) {
		return filepath.ToSlash(folder), nil
	}
	return "", err
}

func awaitLease(ctx context.Context, a *actors.Agent, r api.AwaitLeaseRequest) (view.Lease, error) {
	waiting, cancel, err := bounded(ctx, r.WaitMs)
	if err != nil {
		return view.Lease{}, err
	}
	defer cancel()
	now, err := actors.LeasesOf(a).Await(waiting, r.Lease)
	if err != nil && waiting.Err() != nil && waitPassed(err) && now.Lease != 0 {
		return now, nil
	}
	return now, err
}

func renewLease(ctx context.Context, a *actors.Agent, r api.RenewLeaseRequest) (view.Lease, error) {
	return actors.LeasesOf(a).Renew(ctx, r.Lease, lengthOf(r.TTLMs))
}

func releaseLease(ctx context.Context, a *actors.Agent, r api.ReleaseLeaseRequest) (api.Done, error) {
	return api.Done{}, actors.LeasesOf(a).End(ctx, r.Lease)
}

func listLeases(ctx context.Context, a *actors.Agent, _ api.ListLeasesRequest) (view.Leases, error) {
	return actors.LeasesOf(a).List(ctx)
}

// deniedByLease returns the decision about a call that writes a file which another agent than the one that makes it has a lease on.
func deniedByLease(ctx context.Context, a *actors.Agent, r parley.Approval) (view.Permitted, error) {
	l, _, err := leasedByCall(ctx, a, &parley.Permission{Tool: r.Tool, Input: string(r.Input), Folder: r.Folder})
	if err != nil || l.Lease == 0 {
		return view.Permitted{}, err
	}
	return view.Permitted{Decided: true, Leased: &l}, nil
}

// leasedByCall returns the lease of another agent than the one that makes a call on a file that it writes for sure, and the file; no lease
// if there is none. A call that may write one is asked about.
func leasedByCall(ctx context.Context, a *actors.Agent, p *parley.Permission) (l view.Lease, file string, err error) {
	home, _ := os.UserHomeDir() // without one, what is named by it is not known
	w := writing.Of(p.Tool, []byte(p.Input), p.Folder, home)
	if w != nil {
		w.Maybe = nil
	}
	got, err := Leased(ctx, a, w)
	if got != nil {
		l, file = got.Lease, got.File
	}
	return l, file, err
}

// Bounds of the names of the files of one call, and of the trees of a command.
const (
	maxWrites = 3 * lease.MaxWrites
	maxTrees  = 256
)

// Leased returns the first file of a call on which another agent than the one that makes it has a lease; nil if there is none. A call
// with more files than are looked at is on one, if anybody has any that binds the agent.
func Leased(ctx context.Context, a *actors.Agent, w *api.Writes) (*api.LeasedFile, error) {
	if w == nil || len(w.Files)+len(w.Trees)+len(w.Maybe) == 0 {
		return nil, nil
	}
	bounded := api.Writes{More: w.More || len(w.Files) > maxWrites || len(w.Trees) > maxTrees || len(w.Maybe) > maxTrees}
	bounded.Files, bounded.Trees, bounded.Maybe = w.Files[:min(len(w.Files), maxWrites)], w.Trees[:min(len(w.Trees), maxTrees)], w.Maybe[:min(len(w.Maybe), maxTrees)]
	w = &bounded
	one, file, err := actors.LeasesOf(a).Blocking(ctx, w.Files, w.Trees)
	if err == nil && one.Lease == 0 && w.More {
		var all view.Leases
		if all, err = actors.LeasesOf(a).List(ctx); err == nil {
			if i := slices.IndexFunc(all.Leases, func(l view.Lease) bool { return !l.Own && l.State == view.LeaseHeld }); i >= 0 {
				one = all.Leases[i]
			}
		}
	}
	maybe := false
	if err == nil && one.Lease == 0 {
		one, file, err = actors.LeasesOf(a).Blocking(ctx, nil, w.Maybe)
		maybe = true
	}
	if err != nil || one.Lease == 0 {
		return nil, err
	}
	return &api.LeasedFile{File: file, Maybe: maybe, Lease: one}, nil
}
