//go:build !linux

package runtime

// cgroups are only found on Linux.
type cgroups struct{}

func findCgroups() cgroups { return cgroups{} }

// TakeOver does nothing on this system.
func (l *Launcher) TakeOver() error { return nil }
