//go:build unix

package runtime

import (
	"errors"
	"os/user"
	"strconv"
	"syscall"

	"parley"
)

// identity is the user of a program.
type identity struct {
	Name, Home string
	UID, GID   uint32
	Groups     []uint32
}

// lookUpUser returns a user by name or number, with all groups. It returns nil for the node's own user.
func lookUpUser(name string) (*identity, error) {
	u, err := user.Lookup(name)
	if _, unknown := errors.AsType[user.UnknownUserError](err); unknown {
		u, err = user.LookupId(name)
	}
	if err != nil {
		return nil, parley.Refuse(parley.InvalidArgument, "there is no user %.80q to run the program as", name)
	}
	groups, err := u.GroupIds()
	if err != nil {
		return nil, parley.Refuse(parley.InvalidArgument, "the groups of the user %.80q: %v", name, err)
	}
	id := &identity{Name: u.Username, Home: u.HomeDir, UID: number(u.Uid), GID: number(u.Gid)}
	for _, g := range groups {
		id.Groups = append(id.Groups, number(g))
	}
	if id.UID == uint32(syscall.Geteuid()) {
		return nil, nil
	}
	if !mayBecome() {
		return nil, parley.Refuse(parley.NotPermitted, "the node may not run programs as the user %.80q", name).
			WithHint("run the node as root, or with CAP_SETUID, CAP_SETGID and CAP_KILL")
	}
	return id, nil
}

// number returns the number of a user or group.
func number(s string) uint32 {
	n, _ := strconv.ParseUint(s, 10, 32)
	return uint32(n)
}

// credential returns the credential for the system, nil for the node's own.
func (i *identity) credential() *syscall.Credential {
	if i == nil {
		return nil
	}
	return &syscall.Credential{Uid: i.UID, Gid: i.GID, Groups: i.Groups}
}

// variables returns the environment variables that name the user.
func (i *identity) variables() []string {
	if i == nil {
		return nil
	}
	return []string{"HOME=" + i.Home, "USER=" + i.Name, "LOGNAME=" + i.Name, "SHELL=/bin/sh"}
}
