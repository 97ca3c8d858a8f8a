package persistence

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"sort"
	"sync"

	"parley/capabilities"
	"parley/events"
)

// groupBytes is the size of the commits of a group, and so of the commits that are kept in memory until they are grouped:
// a second's work of a busy node.
const groupBytes = 8 << 20

// maxUngrouped is a multiple of groupBytes. The oldest commits leave memory ungrouped if more collect, as after the start of
// a node without groups, or on a disk that is too slow.
const maxUngrouped = 4

// maxGroups bounds the groups on disk. A mailbox with events in earlier commits only, and no snapshot, reads its commits.
const maxGroups = 32

// grouped has the newest commits of the log so that a mailbox's sections are found without those of others. The very
// newest are in memory, those before are in groups. Commits before the oldest group, and some between, are in neither.
type grouped struct {
	node   capabilities.NodeID
	folder string
	log    *slog.Logger

	full chan struct{} // there is a group to be written

	mu      sync.RWMutex
	closed  bool
	commits []*events.Commit // the newest ones, without gap
	hashes  []events.Hash    // of the commits
	sizes   []int            // bytes of the commits in memory
	bytes   int              // the sum of sizes
	groups  []*group         // by their first commits
	trusted map[*group]bool  // those that are known to be of this log
}

func newGrouped(o *Options) *grouped {
	return &grouped{
		node: o.Node, folder: filepath.Join(o.Folder, groupFolder), log: o.Log, full: make(chan struct{}, 1), trusted: map[*group]bool{},
	}
}

// open finds the groups of an earlier process, and returns the last commit that they have. None is behind the end of the
// log. It changes nothing on disk.
func (g *grouped) open(end uint64) (last uint64) {
	g.close()
	names, err := os.ReadDir(g.folder)
	if err != nil {
		return 0 // there are none yet
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.closed = false
	for _, name := range names {
		if !name.Type().IsRegular() || filepath.Ext(name.Name()) != "" {
			continue
		}
		one, err := openGroup(filepath.Join(g.folder, name.Name()), g.node)
		switch {
		case err != nil:
			g.log.Warn("a group of commits is not used", "file", name.Name(), "error", err)
		case one.first <= last || one.last.Number > end:
			_ = one.file.Close() // it is of another log
		default:
			g.groups, last = append(g.groups, one), one.last.Number
		}
	}
	return last
}

// add adds the commit that follows the last one. Nobody changes it any more.
func (g *grouped) add(c *events.Commit, size int, hash events.Hash) {
	size += 256 + 160*len(c.Sections) // overhead of decoded commits
	g.mu.Lock()
	defer g.mu.Unlock()
	if n := len(g.commits); n > 0 && g.commits[n-1].Number+1 != c.Number {
		g.drop(n)
	}
	g.commits, g.hashes, g.sizes = append(g.commits, c), append(g.hashes, hash), append(g.sizes, size)
	if g.bytes += size; g.bytes > maxUngrouped*groupBytes && len(g.commits) > 1 {
		g.drop((len(g.commits) + 1) / 2)
	}
	if g.bytes > groupBytes {
		signal(g.full)
	}
}

// drop removes the oldest commits from memory. Readers may still have the slice before. The lock is held.
func (g *grouped) drop(n int) {
	for _, size := range g.sizes[:n] {
		g.bytes -= size
	}
	g.commits, g.hashes, g.sizes = slices.Clone(g.commits[n:]), slices.Clone(g.hashes[n:]), slices.Clone(g.sizes[n:])
}

// grouper writes groups until ctx ends.
func (g *grouped) grouper(ctx context.Context) {
	g.sweep()
	for {
		select {
		case <-ctx.Done():
			return
		case <-g.full:
		}
		for g.write() {
			if ctx.Err() != nil {
				return
			}
		}
	}
}

// write writes the oldest commits in memory to a group, and reports whether there were enough. If the disk does not take
// them, they leave memory ungrouped.
func (g *grouped) write() bool {
	g.mu.RLock()
	n, bytes := 0, 0
	for n < len(g.sizes) && bytes < groupBytes {
		bytes += g.sizes[n]
		n++
	}
	commits := slices.Clone(g.commits[:n])
	var hash events.Hash
	if n > 0 {
		hash = g.hashes[n-1]
	}
	g.mu.RUnlock()
	if bytes < groupBytes {
		return false
	}
	first, last := commits[0].Number, commits[n-1].Number
	err := MakeFolder(g.folder)
	if err == nil {
		err = writeGroup(g.folder, g.node, commits, hash)
	}
	var one *group
	if err == nil {
		one, err = openGroup(filepath.Join(g.folder, groupName(first, last)), g.node)
	}
	if err != nil {
		g.log.Warn("commits are not grouped; mailboxes are read more slowly", "first", first, "last", last, "error", err)
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.commits) > 0 && g.commits[0].Number <= last {
		g.drop(int(min(last-g.commits[0].Number+1, uint64(len(g.commits)))))
	}
	if one != nil {
		g.trusted[one] = true
		g.groups = append(g.groups, one)
	}
	for len(g.groups) > maxGroups {
		g.remove(g.groups[0])
	}
	return true
}

// remove closes and removes a group. The lock is held.
func (g *grouped) remove(one *group) {
	g.groups = slices.DeleteFunc(g.groups, func(other *group) bool { return other == one })
	delete(g.trusted, one)
	if err := errors.Join(one.file.Close(), os.Remove(one.path)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		g.log.Warn("a group of commits is not removed", "file", one.path, "error", err)
	}
}

// discard removes a group that turned out to be of no use.
func (g *grouped) discard(one *group, why error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed || !slices.Contains(g.groups, one) {
		return
	}
	g.log.Warn("a group of commits is thrown away", "file", filepath.Base(one.path), "error", why)
	g.remove(one)
}

// leave removes the groups of commits that have left the stream, which end before the first that has not.
func (g *grouped) leave(begin uint64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for len(g.groups) > 0 && g.groups[0].last.Number < begin {
		g.remove(g.groups[0])
	}
}

// sweep removes the files in the folder that are no group in use.
func (g *grouped) sweep() {
	names, err := os.ReadDir(g.folder)
	if err != nil {
		return
	}
	g.mu.RLock()
	defer g.mu.RUnlock()
	for _, name := range names {
		path := filepath.Join(g.folder, name.Name())
		if !slices.ContainsFunc(g.groups, func(one *group) bool { return one.path == path }) {
			if err := os.Remove(path); err != nil {
				g.log.Warn("a file of groups is not removed", "file", name.Name(), "error", err)
			}
		}
	}
}

// forget removes all commits from memory.
func (g *grouped) forget() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.drop(len(g.commits))
}

// close forgets the commits and closes the groups.
func (g *grouped) close() {
	g.forget()
	g.mu.Lock()
	defer g.mu.Unlock()
	g.closed = true
	for _, one := range g.groups {
		_ = one.file.Close()
	}
	g.groups = nil
}

// commit returns a commit that is in memory.
func (g *grouped) commit(number uint64) (*events.Commit, events.Hash, bool) {
	g.mu.RLock()
	defer g.mu.RUnlock()
	if len(g.commits) == 0 || number < g.commits[0].Number || number > g.commits[len(g.commits)-1].Number {
		return nil, events.Hash{}, false
	}
	i := number - g.commits[0].Number
	return g.commits[i], g.hashes[i], true
}

// inMemory returns the sections of a mailbox in the first of some commits, as far as these are in memory, and their number.
func (g *grouped) inMemory(mailbox capabilities.ID, numbers []uint64) (found []numbered, n int) {
	g.mu.RLock()
	commits := g.commits
	g.mu.RUnlock()
	for n < len(numbers) && len(commits) > 0 && numbers[n] >= commits[0].Number && numbers[n] <= commits[len(commits)-1].Number {
		found = appendSections(found, mailbox, commits[numbers[n]-commits[0].Number])
		n++
	}
	return found, n
}

// has reports whether a commit is in a group.
func (g *grouped) has(number uint64) bool {
	one, _ := g.group(number)
	return one != nil
}

// group returns the group with a commit, or nil. trusted says whether the group is known to be of this log.
func (g *grouped) group(number uint64) (one *group, trusted bool) {
	g.mu.RLock()
	defer g.mu.RUnlock()
	i := sort.Search(len(g.groups), func(i int) bool { return g.groups[i].last.Number >= number })
	if i == len(g.groups) || g.groups[i].first > number {
		return nil, false
	}
	return g.groups[i], g.trusted[g.groups[i]]
}

// trust notes that a group is of this log.
func (g *grouped) trust(one *group) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.trusted[one] = true
}
