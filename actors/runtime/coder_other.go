//go:build !linux

package runtime

// ProcessOf returns a process with its ID alone: its start is not known on this system.
func ProcessOf(pid int) (Process, error) { return Process{PID: pid}, nil }

// Coder finds none: the processes above another are not known on this system.
func Coder(int, int, string) (coder Process, folder string, found bool) { return Process{}, "", false }

// ProgramOf finds nothing.
func ProgramOf(Process, string) string { return "" }

// IsBelow returns false: none is known.
func (l *Launcher) IsBelow(int) bool { return false }
