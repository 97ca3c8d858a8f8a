//go:build !unix

package program

import (
	"os"
	"syscall"
)

// Without process groups a program is ended alone, and at once.

func groupLeader() *syscall.SysProcAttr { return nil }

func terminateGroup(p *os.Process) { _ = p.Kill() }

func killGroup(p *os.Process) { _ = p.Kill() }

func groupGone(*os.Process) bool { return true }

func endingText(s *os.ProcessState) string { return s.String() }

func readNow(*os.File, []byte) int { return 0 }
