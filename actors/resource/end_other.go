//go:build !linux

package resource

import "os/exec"

// endsWithNode does nothing: on this system a program learns of the node's end by that of its input alone.
func endsWithNode(*exec.Cmd) (release func()) { return func() {} }
