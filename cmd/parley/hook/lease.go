package hook

import (
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode"

	"parley/gateway/api"
)

// maxLeaseholder bounds the name of the holder of a lease, in characters.
const maxLeaseholder = 40

// leasedTo returns the denial of a call that would write what another agent has leased. An agent gives what a hook says the authority of
// the system, so none of it is the holder's words: its name is reduced to what a name may be, and the file is the call's own.
func leasedTo(l api.LeasedFile) Decision {
	file := "a file that this call writes"
	if l.File != "" {
		file = strconv.Quote(l.File)
	}
	until, who := l.Lease.Until.Std(), leaseholder(l.Lease.HolderName)
	return Decision{Decided: true, Reason: fmt.Sprintf("Parley: %s is leased by %s until %s (%s from now), lease %d. Nothing was written. Ask %s to release it (send_message), "+
		"or wait for it with the tool lease and wait, or with parley lease --wait, or work on something else meanwhile.",
		file, who, until.UTC().Format("15:04 MST"), max(time.Until(until).Round(time.Second), time.Second), l.Lease.Lease, who)}
}

// leaseholder returns the name of an agent with nothing in it that could read as more than that.
func leaseholder(name string) string {
	word := strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) || unicode.IsDigit(r) || strings.ContainsRune("-_.@", r) {
			return r
		}
		return '_'
	}, name)
	runes := []rune(word)
	if len(runes) > maxLeaseholder {
		word = string(runes[:maxLeaseholder]) + "…"
	}
	if word == "" {
		return "another agent"
	}
	return word
}
