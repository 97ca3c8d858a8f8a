//go:build !client

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"time"

	"github.com/spf13/cobra"

	"parley"
	"parley/cmd/parley/proc"
	"parley/gateway"
	"parley/gateway/api"
	"parley/internal/regular"
	"parley/persistence"
)

func startCommand(env *environment) *cobra.Command {
	var s serveOptions
	c := &cobra.Command{
		Use:   "start",
		Short: "Run the node in the background",
		Long: fmt.Sprintf(`Runs the node in the background and returns once it answers. It logs to %s in the state folder. If it
does not come up, start says why.`, logFile),
		Example: "  parley start\n  parley start --listen off",
	}
	s.usualFlags(c)
	c.RunE = func(c *cobra.Command, _ []string) error {
		if _, err := s.level(c); err != nil {
			return err
		}
		return startNode(c.Context(), env, s)
	}
	return c
}

func stopCommand(env *environment) *cobra.Command {
	return &cobra.Command{
		Use:     "stop",
		Short:   "Stop the node",
		Long:    "Stops the node and returns once its process has ended. Nothing is lost by it: open forms stay open.",
		Example: "  parley stop",
		RunE: func(c *cobra.Command, _ []string) error {
			stopped, err := stopNode(c.Context(), env)
			if err != nil {
				return err
			}
			return env.print(stopped, func() string { return fmt.Sprintf("stopped process %d", stopped.PID) })
		},
	}
}

func restartCommand(env *environment) *cobra.Command {
	var s serveOptions
	c := &cobra.Command{
		Use:   "restart",
		Short: "Stop the node and start it again",
		Long: `Stops the node if it runs and starts it in the background, with the options that it had, but for those that
are given. Waiting clients go on waiting.`,
		Example: "  parley restart",
	}
	s.usualFlags(c)
	c.RunE = func(c *cobra.Command, _ []string) error {
		if _, err := s.level(c); err != nil {
			return err
		}
		if err := s.checkAccess(c); err != nil {
			return err
		}
		was, err := api.Status.Do(c.Context(), env, api.NodeRequest{})
		if parley.CodeOf(err) == parley.NotRunning && env.options.state.unanswered(c.Context(), err) != err { //nolint:errorlint // the same one
			if was, err = awaitReady(c.Context(), env, drainTime); err != nil { // it cannot be asked for its options
				return env.options.state.unanswered(c.Context(), err)
			}
		}
		switch {
		case err == nil && was.External && s.nats == "":
			return usage(c, "the node's journal is in another NATS system: say which with --nats")
		case err == nil && was.Service != "" && !c.Flags().Changed("service"):
			return usage(c, "the node serves the clients of a NATS system: say which with --service, or --service off")
		case err == nil:
			s.keep(c.Flags(), was)
		}
		if err := checkFiles(); err != nil { // rather than stop what could not start again
			return err
		}
		if _, err := stopNode(c.Context(), env); err != nil && parley.CodeOf(err) != parley.NotRunning {
			return err
		}
		return startNode(c.Context(), env, s)
	}
	return c
}

// startNode runs a node in another process and blocks until it answers.
func startNode(ctx context.Context, env *environment, s serveOptions) error {
	_, end := env.sayWaiting(func() string {
		return fmt.Sprintf("the node has not answered for %s: it reads a long log, or the disk of %s hangs", sayAfter, env.options.state)
	})
	defer end()
	if err := env.options.state.secure(); err != nil {
		return err
	}
	log, from, err := openNodeLog(env)
	if err != nil {
		return err
	}
	defer log.Close()                    //nolint:errcheck // the node has opened it too
	if err := checkFiles(); err != nil { // which can keep this process too from starting another
		return err
	}
	node, err := spawnNode(env, log, s)
	if err != nil {
		return err
	}
	ended := make(chan error, 1)
	go func() { ended <- node.Wait() }() // ends with the process, or with this one

	ctx, cancel := context.WithTimeout(ctx, defaultReady)
	defer cancel()
	for {
		status, err := fetchStatus(ctx, env)
		if err == nil && status.PID == node.Process.Pid {
			return env.print(status, func() string {
				if status.Listen == gateway.Off {
					return fmt.Sprintf("started process %d, on its socket alone", status.PID)
				}
				return fmt.Sprintf("started process %d, listening on %s", status.PID, status.Listen)
			})
		}
		if env.options.state.isStandby(node.Process.Pid) {
			return env.print(map[string]int{"standby": node.Process.Pid}, func() string {
				return fmt.Sprintf("process %d waits as a standby: the node runs elsewhere", node.Process.Pid)
			})
		}
		select {
		case <-ended:
			err := endError(env, from)
			if parley.CodeOf(err) == parley.AlreadyRunning {
				return env.options.state.unanswered(ctx, err)
			}
			return err
		case <-ctx.Done():
			return parley.Refuse(parley.NotRunning, "process %d does not answer yet", node.Process.Pid).
				WithHint("look into %s", env.options.state.log())
		case <-time.After(pollEvery):
		}
	}
}

// spawnNode starts this program as a node that outlives this process.
func spawnNode(env *environment, log *os.File, s serveOptions) (*exec.Cmd, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find this program: %w", err)
	}
	node := exec.Command(self, append([]string{"serve", "--state", string(env.options.state)}, s.args()...)...)
	node.Stdout, node.Stderr = log, log
	node.Env = append(proc.WithoutCoder(os.Environ()), variablePrefix+"JSON=", variablePrefix+"OUTPUT=")
	proc.Detach(node)
	if err := node.Start(); err != nil {
		return nil, fmt.Errorf("start the node: %w", err)
	}
	return node, nil
}

// openNodeLog opens the node's log for appending, and returns its size. A large log is renamed first.
func openNodeLog(env *environment) (*os.File, int64, error) {
	info, err := os.Stat(env.options.state.log())
	switch {
	case err == nil && !info.Mode().IsRegular(): // to open a pipe would wait
		return nil, 0, parley.Refuse(parley.InvalidArgument, "%s is not a regular file", env.options.state.log()).WithHint("remove it: the next start makes the file")
	case err == nil && info.Size() > maxLogFile:
		if err := os.Rename(env.options.state.log(), env.options.state.log()+".1"); err != nil {
			return nil, 0, env.options.state.unwritable(err)
		}
	}
	log, err := os.OpenFile(env.options.state.log(), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, 0, env.options.state.unwritable(err)
	}
	if info, err = log.Stat(); err != nil {
		return nil, 0, errors.Join(err, log.Close())
	}
	return log, info.Size(), nil
}

// endError returns the error in the node's log, which has it from an offset on.
func endError(env *environment, from int64) error {
	log, err := os.Open(env.options.state.log())
	if err != nil {
		return err
	}
	defer log.Close() //nolint:errcheck // only read from
	if _, err := log.Seek(from, io.SeekStart); err != nil {
		return err
	}
	var text bytes.Buffer
	if _, err := io.Copy(&text, log); err != nil {
		return err
	}
	if e := lastFailure(text.String()); e != nil {
		return e
	}
	return parley.Refuse(parley.Internal, "the node ended before it answered").WithHint("look into %s", env.options.state.log())
}

// goneTime is how long a node that has no socket any more is given to end by itself.
const goneTime = time.Second

// stopNode asks the node to stop, and blocks until its process has ended. A node that goes before it has answered, because
// it is stopping already, is waited for as well. One whose socket was removed, or is not there yet, is stopped by a signal, which
// changes nothing for one that is stopping.
func stopNode(ctx context.Context, env *environment) (api.StopResponse, error) {
	before, locked, err := env.options.state.holder()
	if err != nil {
		return api.StopResponse{}, fmt.Errorf("look at the lock: %w", err)
	}
	disk := waitsForDisk(ctx, env)
	if disk != "" {
		fmt.Fprintf(env.stderr, "parley%s; the node stops when the disk goes on\n", disk)
	}
	stopped, err := api.Stop.Do(ctx, env, api.NodeRequest{})
	if parley.CodeOf(err) == parley.NotRunning {
		if locked && !env.options.state.isStandby(before) && untilFree(ctx, env, goneTime, disk) == nil {
			return api.StopResponse{PID: before}, nil
		}
		if pid, held, look := env.options.state.nodeProcess(); look == nil && held && pid == before {
			stopped.PID, err = pid, env.options.state.terminate(pid)
		} else {
			stopped.PID, err = stopStandby(env, err)
		}
	}
	if err != nil {
		return stopped, err
	}
	if err := untilFree(ctx, env, 3*drainTime, disk); err != nil {
		return stopped, err
	}
	return stopped, nil
}

// journalHeld reports whether a process has the journal open. It is asked where the lock of the state folder is not held: that file may have
// been removed while the node ran.
func (s stateFolder) journalHeld() bool {
	file, err := regular.Open(s.in(persistence.HighWaterFile), os.O_RDONLY)
	if err != nil {
		return false
	}
	defer file.Close() //nolint:errcheck // only looked at
	return errors.Is(proc.LockShared(file), proc.ErrLocked)
}

// untilFree blocks until no process has the lock of the state folder, or fails with TIMEOUT. Why, if not empty, says what
// the process waits for.
func untilFree(ctx context.Context, env *environment, atMost time.Duration, why string) error {
	patience, cancel := context.WithTimeout(ctx, atMost)
	defer cancel()
	for {
		pid, locked, err := env.options.state.holder()
		if err != nil {
			return fmt.Errorf("look at the lock: %w", err)
		}
		if !locked && !env.options.state.journalHeld() {
			return nil
		}
		select {
		case <-patience.Done():
			return parley.Refuse(parley.Timeout, "process %d is still stopping%s", pid, why)
		case <-time.After(pollEvery):
		}
	}
}

// terminate ends the process that has the folder, and cannot be asked to. Its number is of the process's own system, as another container
// may be: it is looked at who has the lock.
func (s stateFolder) terminate(pid int) error {
	info, err := os.Stat(s.lockPath())
	if err == nil && !proc.Locks(pid, info) {
		return parley.Refuse(parley.NotRunning, "process %d has the state folder, nothing answers on its socket, and this system does not show it", pid).
			WithHint("end it where it runs, as in its container")
	}
	if err == nil {
		err = proc.Terminate(pid)
	}
	if err != nil {
		return fmt.Errorf("stop process %d: %w", pid, err)
	}
	return nil
}

// stopStandby ends a process that waits as a standby. A standby has no socket on which to ask it. Without one, the
// error is none.
func stopStandby(env *environment, none error) (pid int, err error) {
	pid, locked, err := env.options.state.holder()
	if err != nil || !locked || !env.options.state.isStandby(pid) {
		return 0, none
	}
	if err := proc.Terminate(pid); err != nil {
		return 0, fmt.Errorf("stop the standby: %w", err)
	}
	return pid, nil
}
