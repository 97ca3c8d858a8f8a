package runtime

import (
	"bufio"
	"encoding/gob"
	"os"
	"os/signal"
	"runtime"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// supervisorName is the command name of a supervisor. It is the node's own executable, which then does nothing else.
const supervisorName = "parley-supervisor"

func init() {
	if len(os.Args) == 1 && os.Args[0] == supervisorName {
		supervise()
	}
}

// The files that a supervisor gets beside those of its program.
const (
	ordersFile  = 3
	reportsFile = 4
)

// supervisor starts one program, and ends with it.
type supervisor struct {
	reports *os.File
	cgroup  string

	mu     sync.Mutex
	pid    int  // of the program
	reaped bool // it was waited for: its number may be another's
}

// supervise runs a supervisor. It does not return.
func supervise() {
	runtime.LockOSThread() // the program is killed when the thread that started it ends
	syscall.CloseOnExec(ordersFile)
	syscall.CloseOnExec(reportsFile)
	// Signals are taken and dropped. A program would inherit that they are ignored.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGPIPE)
	orders := bufio.NewReader(os.NewFile(ordersFile, "orders"))
	s := &supervisor{reports: os.NewFile(reportsFile, "reports")}
	var p plan
	if err := gob.NewDecoder(orders).Decode(&p); err != nil {
		syscall.Exit(1)
	}
	s.cgroup = p.Cgroup
	err := s.start(p)
	if err != nil {
		s.report(startReport{Err: err.Error()})
		syscall.Exit(1)
	}
	s.report(startReport{PID: s.pid})
	if null, err := syscall.Open(os.DevNull, syscall.O_RDWR|syscall.O_CLOEXEC, 0); err == nil {
		for fd := range 3 { // the program alone has its pipes open
			_ = syscall.Dup3(null, fd, 0)
		}
	}
	go s.obey(orders)
	s.report(endReport{Status: s.await()})
	s.killAll()
	cgroups{}.remove(p.Cgroup) // the node may be gone
	syscall.Exit(0)
}

// report sends a report to the node, and ignores errors: the node may be gone.
func (s *supervisor) report(what any) { _ = gob.NewEncoder(s.reports).Encode(what) }

// start starts the program. Orphans of the program become children of this process.
func (s *supervisor) start(p plan) error {
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return err
	}
	// A program of the same user cannot trace this process. Where the system refuses that, it is as before.
	_ = unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0)
	attributes := &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL, Credential: p.Who.credential()}
	start := func() (err error) {
		s.pid, err = syscall.ForkExec(p.Path, p.Args, &syscall.ProcAttr{Dir: p.Folder, Env: p.Env, Files: []uintptr{0, 1, 2}, Sys: attributes})
		return err
	}
	if p.Cgroup != "" {
		folder, err := syscall.Open(p.Cgroup, unix.O_PATH|syscall.O_DIRECTORY|syscall.O_CLOEXEC, 0)
		if err == nil {
			attributes.UseCgroupFD, attributes.CgroupFD = true, folder
			err = start()
			_ = syscall.Close(folder)
		}
		if err == nil {
			return nil
		}
		attributes.UseCgroupFD, s.cgroup = false, "" // the cgroup may be why
	}
	return start()
}

// obey executes the node's orders. When the node is gone, it kills everything.
func (s *supervisor) obey(orders *bufio.Reader) {
	for {
		switch order, err := orders.ReadByte(); {
		case err != nil:
			s.killAll()
			return
		case order == orderTerminate:
			s.terminate()
		case order == orderKill:
			s.killAll()
		}
	}
}

// terminate asks the program and its group to end.
func (s *supervisor) terminate() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.reaped {
		_ = syscall.Kill(-s.pid, syscall.SIGTERM)
	}
}

// await reaps children until the program ends, and returns the program's status.
func (s *supervisor) await() syscall.WaitStatus {
	for {
		// First it waits without reaping, so that no signal goes to a number that is another's by now.
		err := unix.Waitid(unix.P_ALL, 0, nil, unix.WEXITED|unix.WNOWAIT, nil)
		if err != nil && err != syscall.EINTR {
			return 0
		}
		if status, ended := s.reap(); ended {
			return status
		}
	}
}

// reap reaps ended children. It reports whether the program was one of them.
func (s *supervisor) reap() (program syscall.WaitStatus, ended bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for {
		var status syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &status, syscall.WNOHANG, nil)
		switch {
		case err == syscall.EINTR:
		case err != nil || pid <= 0:
			return program, ended
		case pid == s.pid && !s.reaped:
			program, ended, s.reaped = status, true, true
		}
	}
}

// killAll kills all descendants of this process, until none is left that it may kill.
func (s *supervisor) killAll() {
	for {
		killCgroup(s.cgroup)
		left := killBelow(os.Getpid())
		s.mu.Lock()
		over := s.reaped
		s.mu.Unlock()
		if over { // else await reaps
			s.reap()
		}
		if !left {
			return
		}
		time.Sleep(time.Millisecond)
	}
}
