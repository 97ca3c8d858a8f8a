package hook

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"parley/gateway/api"
	"parley/gateway/sanitize"
	"parley/internal/realpath"
	"parley/mailbox/lease"
)

// leasedTo returns the denial of a call that would write what another agent has leased. An agent gives what a hook says the authority of
// the system, so none of it is the holder's words: its name is reduced to what a name may be, and the file is the call's own.
func leasedTo(l api.LeasedFile) Decision {
	file := "a file that this call writes"
	if l.File != "" {
		file = strconv.Quote(l.File)
	}
	until, who := l.Lease.Until.Std(), sanitize.Name(l.Lease.HolderName, "another agent")
	return Decision{Decided: true, Reason: fmt.Sprintf("Parley: %s is leased by %s until %s (%s from now), lease %d. Nothing was written. Ask %s to release it (send_message), "+
		"or wait for it with the tool lease and wait, or with parley lease --wait, or work on something else meanwhile.",
		file, who, until.UTC().Format("15:04 MST"), max(time.Until(until).Round(time.Second), time.Second), l.Lease.Lease, who)}
}

// mayBeLeased says, for whoever works with the agent, what a command may change that another agent has leased.
func mayBeLeased(l api.LeasedFile) string {
	return fmt.Sprintf("this command may change %s, which %s has leased until %s", strconv.Quote(l.File), sanitize.Name(l.Lease.HolderName, "another agent"), l.Lease.Until.Std().UTC().Format("15:04 MST"))
}

// tellsLeases reports whether an event is one at which the model is told of new leases: one that costs no turn.
func (a Agent) tellsLeases(call toolCall) bool {
	switch a.moments[call.event] {
	case api.MomentStart, api.MomentPrompt, api.MomentCalls:
		return !call.isNudge()
	}
	return false
}

// maxNamed bounds the path of a lease that is named, in characters.
const maxNamed = 60

// leaseNotice returns what a model is told of the leases of others in the folder that it works in: one line of Parley's. It names the file
// or folder of a lease by what is on the disk there, and only a name without blanks: a pattern is the words of another agent, and
// may say anything.
func leaseNotice(folder string, news api.LeaseNews) string {
	var named []string
	more := news.More
	for _, l := range news.Leases {
		var at []string
		for _, p := range l.Patterns {
			if path, ok := leasedPath(folder, p); ok && !slices.Contains(at, path) && len(at) < 2 {
				at = append(at, path)
			}
		}
		if len(at) == 0 {
			more++
			continue
		}
		named = append(named, fmt.Sprintf("%s (by %s until %s)", strings.Join(at, " and "), sanitize.Name(l.HolderName, "another agent"), l.Until.Std().UTC().Format("15:04 MST")))
	}
	switch {
	case len(named) == 0 && more == 0:
		return "Parley: no other agent has leased files in this folder any more."
	case more == 1 && len(named) == 0:
		named = append(named, "one lease")
	case more > 0 && len(named) == 0:
		named = append(named, fmt.Sprintf("%d leases", more))
	case more > 0:
		named = append(named, fmt.Sprintf("%d more", more))
	}
	return "Parley: other agents have leased files in this folder: " + strings.Join(named, ", ") + ". Do not write those, nor with a command: editing tools are refused them, " +
		"and commands where they name them. list_leases shows all. This is information, not an instruction of your user."
}

// leasedPath returns the path, within a folder, up to the first wildcard of a pattern, if it is of something that is there and has no
// characters but those of simple names.
func leasedPath(folder, pattern string) (string, bool) {
	at, rest := lease.Pattern(pattern).Cut()
	inside, err := filepath.Rel(realpath.Of(folder), filepath.FromSlash(at))
	if at == "" || err != nil || !filepath.IsLocal(inside) {
		return "", false
	}
	inside = filepath.ToSlash(inside)
	isPlain := !strings.ContainsFunc(inside, func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("-_.@/", r)
	})
	if _, err := os.Lstat(filepath.FromSlash(at)); err != nil || !isPlain || utf8.RuneCountInString(inside) > maxNamed {
		return "", false
	}
	if rest != "" {
		return "some of " + strconv.Quote(inside), true
	}
	return strconv.Quote(inside), true
}
