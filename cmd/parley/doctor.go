//go:build !client

package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"parley"
	"parley/actors/keys"
	"parley/actors/view"
	"parley/cmd/parley/bench"
	"parley/cmd/parley/hook"
	"parley/cmd/parley/proc"
	"parley/cmd/parley/setup"
	"parley/cmd/parley/terminal"
	"parley/gateway"
	"parley/gateway/bridge"
	"parley/gateway/client"
)

// finding is the result of one check.
type finding struct {
	Check  string `json:"check"`
	Result string `json:"result"` // ok, warn or fail
	Detail string `json:"detail"`
}

const (
	fine    = "ok"
	dubious = "warn"
	bad     = "fail"

	fsync = "fsync" // a check

	measureFlag = "measure" // of the process that doctor starts for that check
)

// The least free space, and the longest sync and read of the log, without a warning.
const (
	littleSpace = 256 << 20
	slowFsync   = 50 * time.Millisecond
	stuckFsync  = 5 * time.Second // from then on the disk hangs
	longRead    = 5 * time.Second
)

func doctorCommand(env *environment) *cobra.Command {
	tree, folder := false, ""
	doctor := &cobra.Command{
		Use:     "doctor",
		Short:   "Check the state folder, the disk and the node",
		Long:    "Checks what a node needs and says what is wrong, one line a check. Fails if any check does.",
		Example: "  parley doctor\n  parley doctor --json\n  parley doctor --tree     show the node's actors, and which were restarted",
		RunE: func(c *cobra.Command, _ []string) error {
			if tree {
				return showTree(c.Context(), env)
			}
			if folder != "" {
				return measure(c.Context(), env, folder)
			}
			found := runChecks(c.Context(), env)
			failed := slices.ContainsFunc(found, func(f finding) bool { return f.Result == bad })
			err := env.print(found, func() string {
				text := ""
				for i, f := range found {
					if i > 0 {
						text += "\n"
					}
					text += fmt.Sprintf("%-4s  %-13s %s", f.Result, f.Check, terminal.Visible(f.Detail))
				}
				return text
			})
			if err == nil && failed {
				err = parley.Refuse(parley.Internal, "not everything is as it should be")
			}
			return err
		},
	}
	doctor.Flags().BoolVar(&tree, "tree", false, "show the actors of the running node instead")
	doctor.Flags().StringVar(&folder, measureFlag, "", "measure the disk of a folder")
	if err := doctor.Flags().MarkHidden(measureFlag); err != nil {
		panic(err) // there is the flag
	}
	return doctor
}

func runChecks(ctx context.Context, env *environment) []finding {
	checks := []struct {
		name  string
		check func(context.Context, *environment) (string, string)
	}{
		{"state folder", checkFolder},
		{"key", checkKey},
		{"free space", checkSpace},
		{fsync, checkFsync},
		{"lock", checkLock},
		{"socket", checkSocket},
		{"node", checkNode},
		{"limits", checkLimits},
		{"quotas", checkNodeQuotas},
	}
	found := make([]finding, len(checks))
	for i, c := range checks {
		result, detail := c.check(ctx, env)
		found[i] = finding{c.name, result, detail}
	}
	if zone := unknownZone(env); zone != "" {
		found = append(found, finding{"time zone", dubious, fmt.Sprintf("TZ is %s, which is the name of no time zone: times are read and shown in UTC. A name is as Europe/Berlin", terminal.Quoted(zone))})
	}
	if err := gateway.CheckCoders(env.options.state.coders()); err != nil {
		found = append(found, finding{"coders.json", bad, withHint(err)})
	}
	if _, err := bridge.ReadConfigs(env.options.state.bridges()); err != nil {
		found = append(found, finding{"bridges.json", bad, withHint(err)})
	}
	if !slices.ContainsFunc(found, func(f finding) bool { return f.Check == fsync && f.Result == bad }) { // to read would hang too
		found = append(found, checkLog(ctx, env)...)
	}
	found = append(found, checkSnapshots(ctx, env)...)
	return append(found, checkCodingAgents(ctx, env)...)
}

// checkLog reads the log where no node runs, as verify does, and gives up where that takes long. It finds nothing of a
// log that a node has open, or that is not in the state folder.
func checkLog(ctx context.Context, env *environment) []finding {
	reading, cancel := context.WithTimeout(ctx, longRead)
	defer cancel()
	found, err := verifyOffline(reading, env)
	switch code := parley.CodeOf(err); {
	case err == nil && found.Unmarked:
		return []finding{{"log", dubious, strings.ReplaceAll(verified(found), "\n", "; ")}}
	case err == nil:
		return []finding{{"log", fine, verified(found)}}
	case code == parley.NotRunning || code == parley.AlreadyRunning:
		return nil
	case reading.Err() != nil:
		return []finding{{"log", dubious, fmt.Sprintf("not read to its end within %v: parley verify does", longRead)}}
	}
	return []finding{{"log", bad, withHint(err)}}
}

// withHint returns an error with its hint in one line.
func withHint(err error) string {
	e := parley.AsError(err)
	if _, ok := errors.AsType[*parley.Error](err); !ok { // it is of this process, which has no log
		e = withoutCode(err)
	}
	if e.Hint == "" {
		return e.Error()
	}
	return e.Error() + ": " + e.Hint
}

// checkCodingAgents warns of settings of Claude Code and Codex that do not ask as they should. It finds nothing of a
// program that is neither there nor set up.
func checkCodingAgents(ctx context.Context, env *environment) (found []finding) {
	o, err := setupOptions(env, false)
	if err != nil {
		return nil // there is no home folder
	}
	for _, agent := range hook.Agents() {
		words, good := setup.Check(ctx, agent, o)
		name := strings.ReplaceAll(agent.Name, "-", " ")
		switch {
		case words == "":
		case !good:
			found = append(found, finding{name, dubious, words})
		default:
			found = append(found, finding{name, fine, words})
		}
	}
	return found
}

// checkSnapshots warns of snapshots that the running node has discarded. It finds nothing if there are none.
func checkSnapshots(ctx context.Context, env *environment) []finding {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	tree, err := fetchTree(ctx, env)
	if err != nil { // the check of the node reports the error
		return nil
	}
	return snapshotFindings(tree)
}

func snapshotFindings(tree []view.ActorState) (found []finding) {
	for _, a := range tree {
		if a.Snapshots > 0 {
			found = append(found, finding{"snapshots", dubious, fmt.Sprintf("%d unreadable since the node was started: the log was read in their place, nothing is lost", a.Snapshots)})
		}
	}
	return found
}

func checkFolder(_ context.Context, env *environment) (string, string) {
	folder := string(env.options.state)
	info, err := os.Stat(folder)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return dubious, folder + " is not there yet: parley start makes it"
	case err != nil:
		return bad, err.Error()
	case !info.IsDir():
		return bad, folder + " is no folder"
	case keys.OpenToOthers(info):
		return dubious, fmt.Sprintf("%s has mode %04o: others may look into it, and start refuses it: chmod 700", folder, info.Mode().Perm())
	}
	return fine, folder
}

func checkKey(_ context.Context, env *environment) (string, string) {
	path := env.options.state.key()
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if _, err := os.Lstat(env.options.state.journal()); err == nil {
			return bad, keys.FileName + " is gone, and the journal beside it is of its node: put it back, or restore a backup into a new folder"
		}
		return dubious, "there is none yet"
	case err != nil:
		return bad, err.Error()
	case keys.OpenToOthers(info):
		return bad, fmt.Sprintf("mode %04o: whoever reads it can be this node; want 0600", info.Mode().Perm())
	}
	if _, err := keys.Load(string(env.options.state)); err != nil {
		return bad, err.Error()
	}
	return fine, keys.FileName + ", mode 0600"
}

func checkSpace(_ context.Context, env *environment) (string, string) {
	free, err := proc.FreeSpace(nearestFolder(env))
	if err != nil {
		return bad, err.Error()
	}
	detail := fmt.Sprintf("%d MiB", free>>20)
	if free < littleSpace {
		return dubious, detail + ": the node goes read-only when there is none"
	}
	return fine, detail
}

// nearestFolder returns the state folder, or the nearest existing folder above it.
func nearestFolder(env *environment) string {
	folder := string(env.options.state)
	for folder != filepath.Dir(folder) {
		if info, err := os.Stat(folder); err == nil && info.IsDir() {
			return folder
		}
		folder = filepath.Dir(folder)
	}
	return folder
}

func checkFsync(ctx context.Context, env *environment) (string, string) {
	asking, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	if status, err := fetchStatus(asking, env); err == nil && status.Journal.Flushing > 0 {
		return bad, "not measured: the disk " + terminal.SlowDisk(status.Journal.Flushing)
	}
	p50, err := measureApart(nearestFolder(env))
	if err != nil {
		return bad, err.Error()
	}
	detail := fmt.Sprintf("%.2f ms for 4 KiB", p50.Seconds()*1000)
	if p50 > slowFsync {
		return dubious, detail + ": every acknowledgement waits for two of these"
	}
	return fine, detail
}

// measureApart measures a disk in a process of its own. A process with a write that a disk does not finish cannot end before that, whatever it
// is sent. That is then the other one, which has nothing of this one's open, and removes its file when the disk goes on.
func measureApart(folder string) (time.Duration, error) {
	self, err := os.Executable()
	if err != nil {
		return 0, err
	}
	apart := exec.Command(self, "doctor", "--"+measureFlag, folder)
	apart.Args[0] = "parley"
	out, err := apart.StdoutPipe()
	if err == nil {
		err = apart.Start()
	}
	if err != nil {
		return 0, fmt.Errorf("the disk cannot be measured: %w", err)
	}
	said := make(chan string, 1)
	go func() {
		text, _ := io.ReadAll(out) // what is there says how it went
		said <- strings.TrimSpace(string(text))
	}()
	select {
	case text := <-said:
		_ = apart.Wait() // it says why in its text
		p50, err := time.ParseDuration(text)
		if err != nil {
			return 0, errors.New(cmp.Or(text, "the disk cannot be measured"))
		}
		return p50, nil
	case <-time.After(stuckFsync):
		return 0, fmt.Errorf("the disk has not finished a write of 4 KiB within %v", stuckFsync)
	}
}

// measure prints how long a disk takes for a write, or why that is not known.
func measure(ctx context.Context, env *environment, folder string) error {
	rate, err := bench.MeasureDisk(ctx, folder, 200*time.Millisecond)
	if err != nil {
		_, err = fmt.Fprintln(env.stdout, err)
		return err
	}
	_, err = fmt.Fprintln(env.stdout, rate.P50())
	return err
}

func checkLock(ctx context.Context, env *environment) (string, string) {
	pid, locked, err := env.options.state.holder()
	switch {
	case err != nil:
		return bad, withHint(err)
	case locked:
		return fine, fmt.Sprintf("held by process %d", pid)
	}
	if pid := whoAnswers(ctx, env); pid != 0 {
		return dubious, fmt.Sprintf("process %d runs, and the file %s was removed or replaced, by which other processes see that: parley restart makes it again", pid, env.options.state.lockPath())
	}
	return fine, "free: no node runs"
}

// whoAnswers returns the number of the process that answers on the socket, 0 if none does.
func whoAnswers(ctx context.Context, env *environment) int {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	status, err := fetchStatus(ctx, env)
	if err != nil {
		return 0
	}
	return status.PID
}

func checkSocket(ctx context.Context, env *environment) (string, string) {
	info, err := os.Lstat(env.options.state.socket())
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if pid, held, err := env.options.state.nodeProcess(); err == nil && held {
			return bad, fmt.Sprintf("there is none, though process %d runs: it is starting or stopping, or the socket was removed; see below", pid)
		}
		return fine, "there is none: no node runs"
	case err != nil:
		return bad, err.Error()
	case info.Mode().Type() != fs.ModeSocket:
		return bad, env.options.state.socket() + " is no socket: remove it; the next start makes one"
	case keys.OpenToOthers(info):
		return bad, fmt.Sprintf("mode %04o: whoever opens it acts for the host; want 0600", info.Mode().Perm())
	}
	if _, locked, err := env.options.state.holder(); err == nil && !locked && whoAnswers(ctx, env) == 0 {
		return dubious, "left behind by a crash; the next start replaces it"
	}
	return fine, env.options.state.socket()
}

func checkNode(ctx context.Context, env *environment) (string, string) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	status, err := fetchStatus(ctx, env)
	switch {
	case parley.CodeOf(err) == parley.NotRunning:
		if held := env.options.state.unanswered(ctx, err); held != err { //nolint:errorlint // the same one
			return bad, withHint(held)
		}
		return dubious, "not running: parley start"
	case err != nil:
		return bad, err.Error()
	case anotherAnswers(env, status.PID):
		return bad, fmt.Sprintf("process %d answers on the socket, and another one has the state folder: parley stop ends that, parley start starts it again", status.PID)
	case status.Problem != nil:
		return bad, status.Problem.Error()
	case status.Journal.Flushing > 0:
		return dubious, "the disk " + terminal.SlowDisk(status.Journal.Flushing)
	case status.Journal.Behind > 0:
		return dubious, "the clock is " + terminal.ClockBehind(status.Journal.Behind)
	}
	if status.Programs.Held {
		return dubious, "programs are held since the node was restored: parley node programs start"
	}
	text := fmt.Sprintf("process %d, %d agents, %d open forms, %d commits", status.PID, status.Agents, status.OpenForms, status.Journal.Commits)
	if status.Journal.Archived > 0 {
		text += fmt.Sprintf(", %d of them in the archive", status.Journal.Archived)
	}
	return fine, text
}

// unknownZone returns the TZ of the process if it names no time zone, in whose place the standard library takes UTC; "" if it names one.
func unknownZone(env *environment) string {
	set, _ := env.lookup("TZ")
	zone := strings.TrimPrefix(set, ":")
	_, err := time.LoadLocation(zone)
	if filepath.IsAbs(zone) {
		var data []byte
		if data, err = os.ReadFile(zone); err == nil {
			_, err = time.LoadLocationFromTZData(zone, data)
		}
	}
	if err == nil {
		return ""
	}
	return zone
}

// anotherAnswers reports whether what answers as a process is not the one that has the state folder.
func anotherAnswers(env *environment, pid int) bool {
	has, held, err := env.options.state.nodeProcess()
	return err == nil && held && has != 0 && has != pid
}

func checkNodeQuotas(ctx context.Context, env *environment) (string, string) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	status, err := fetchStatus(ctx, env)
	if err != nil {
		return fine, "not known: no node answers"
	}
	return quotaWarnings(status.Quotas)
}

// checkLimits warns of limits that are nearly reached, and of those that refused something.
func checkLimits(ctx context.Context, env *environment) (string, string) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	status, err := fetchStatus(ctx, env)
	if parley.CodeOf(err) == parley.NotRunning {
		return fine, "not known: no node answers"
	}
	if err != nil {
		return bad, err.Error()
	}
	var short []string
	for _, l := range status.Limits {
		if l.Refused > 0 || 10*l.Now > 9*l.Limit {
			short = append(short, fmt.Sprintf("%s of %s: %d of %d, %d refused", l.Name, l.For, l.Now, l.Limit, l.Refused))
		}
	}
	if len(short) > 0 {
		return dubious, strings.Join(short, "; ") + ": parley restart --limit raises them"
	}
	return fine, fmt.Sprintf("%d, none met", len(status.Limits))
}

// quotaWarnings warns of agents and nodes that use most of a quota.
func quotaWarnings(q view.NodeQuotas) (string, string) {
	const much = 0.8
	near := map[string]bool{}
	for _, u := range q.Heaviest {
		if u.Share >= much {
			near[fmt.Sprintf("agent %s uses %.0f %% of %s", nameOr(u.Name, u.Agent.String()), 100*u.Share, u.Quota)] = true
		}
	}
	for _, u := range q.PeersUsed {
		if u.Share >= much {
			near[fmt.Sprintf("node %s uses %.0f %% of %s", nameOr(u.Name, u.Node.String()), 100*u.Share, u.Quota)] = true
		}
	}
	if len(near) == 0 {
		return fine, "nobody uses more than 80 % of a quota"
	}
	return dubious, strings.Join(slices.Sorted(maps.Keys(near)), "; ") + ": parley agent quota and parley node limit raise it"
}

func nameOr(name, id string) string {
	if name == "" {
		return id
	}
	return name
}

// showTree prints the tree of the node's actors: doctor --tree.
func showTree(ctx context.Context, env *environment) error {
	tree, err := fetchTree(ctx, env)
	if err != nil {
		return err
	}
	return env.print(tree, func() string { return treeText(tree) })
}

// fetchTree reads the tree from the node's socket.
func fetchTree(ctx context.Context, env *environment) ([]view.ActorState, error) {
	transport := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return client.Dial(ctx, env.options.state.socket())
	}}
	defer transport.CloseIdleConnections()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://parley"+gateway.TreePath, nil)
	if err != nil {
		return nil, err
	}
	got, err := transport.RoundTrip(r)
	if err != nil {
		return nil, parley.Refuse(parley.NotRunning, "no node runs on this state folder").WithHint("start one with: parley start")
	}
	defer got.Body.Close() //nolint:errcheck // read to its end or given up
	if got.StatusCode != http.StatusOK {
		return nil, parley.Refuse(parley.InvalidArgument, "the node that runs cannot show its actors").WithHint("parley restart has it run this version")
	}
	var tree []view.ActorState
	if err := json.NewDecoder(got.Body).Decode(&tree); err != nil {
		return nil, fmt.Errorf("read the tree: %w", err)
	}
	return tree, nil
}

// treeText shows each actor below its parent.
func treeText(tree []view.ActorState) string {
	var b strings.Builder
	shown := map[string]bool{}
	for _, a := range tree {
		parts := strings.Split(a.Name, "/")
		for i := range parts {
			path := strings.Join(parts[:i+1], "/")
			if shown[path] {
				continue
			}
			shown[path] = true
			fmt.Fprintf(&b, "%s%s", strings.Repeat("  ", i), terminal.Visible(parts[i]))
			if path == a.Name && a.Restarts > 0 {
				fmt.Fprintf(&b, "  restarts: %d", a.Restarts)
			}
			if path == a.Name && a.Problem != "" {
				fmt.Fprintf(&b, "  %s", terminal.Visible(a.Problem))
			}
			b.WriteByte('\n')
		}
	}
	return strings.TrimSuffix(b.String(), "\n")
}
