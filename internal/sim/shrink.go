package sim

import (
	"regexp"
	"slices"
	"strings"
)

// shrink returns the smallest schedule that it can find that breaks an invariant of the same kind.
func shrink(s Schedule, broken string) Schedule {
	length := func(steps []Step) int { // of the transcript, or 0 if nothing of the kind is broken
		var seen [states]int
		text, lines := run(Schedule{s.Nodes, steps}, &seen, true)
		if text == "" || !sameKind(text, broken) {
			return 0
		}
		return len(lines)
	}
	kept := s.Steps
	for range mostRounds {
		kept = withoutSteps(kept, func(steps []Step) bool { return length(steps) > 0 })
		drawn := redrawn(kept, length)
		if slices.Equal(drawn, kept) {
			break
		}
		kept = drawn
	}
	return Schedule{s.Nodes, kept}
}

const (
	mostRounds = 4
	mostDraws  = 60 // that are tried for a step
)

// withoutSteps leaves out chunks of steps, of half as many each time, as long as the rest fails.
func withoutSteps(kept []Step, fails func([]Step) bool) []Step {
	for size := max(len(kept)/2, 1); size > 0; {
		dropped := false
		for at := 0; at < len(kept); {
			end := min(at+size, len(kept))
			without := append(append(make([]Step, 0, len(kept)), kept[:at]...), kept[end:]...)
			if fails(without) {
				kept, dropped = without, true
			} else {
				at = end
			}
		}
		if !dropped || size > 1 {
			size /= 2
		}
	}
	return kept
}

// redrawn makes other choices in the steps, one step at a time, when less happens then.
func redrawn(kept []Step, length func([]Step) int) []Step {
	kept = slices.Clone(kept)
	best := length(kept)
	for i := range kept {
		for draw := range uint64(mostDraws) {
			before := kept[i].Draw
			kept[i].Draw = draw
			if n := length(kept); n > 0 && (n < best || n == best && before >= mostDraws) {
				best = n
				continue
			}
			kept[i].Draw = before
		}
	}
	return kept
}

var (
	nodeOfLine  = regexp.MustCompile(`@([A-E])\b|^([A-E]) |\bto ([A-E])$`)
	idleMessage = regexp.MustCompile(`handles (read|resume|activate)$`)
)

// condense returns the lines of a transcript that may matter: those of the nodes that the broken invariant names, and of
// nodes that exchange packets with these. Messages and steps without an effect are left out.
func condense(lines []string, broken string) []string {
	matter := nodesIn(broken)
	for grown := len(matter) > 0; grown; {
		grown = false
		for _, line := range lines {
			all := nodesIn(line)
			if slices.ContainsFunc(all, func(n string) bool { return slices.Contains(matter, n) }) {
				for _, n := range all {
					if !slices.Contains(matter, n) {
						matter, grown = append(matter, n), true
					}
				}
			}
		}
	}
	var kept []string
	drops := false
	for i, line := range lines {
		all, last := nodesIn(line), i+1 == len(lines)
		switch {
		case strings.HasPrefix(line, "step "):
			drops = false
			if n := len(kept); n > 0 && strings.HasPrefix(kept[n-1], "step ") {
				kept = kept[:n-1] // nothing happened in it
			}
		case len(all) > 0:
			drops = len(matter) > 0 && !slices.ContainsFunc(all, func(n string) bool { return slices.Contains(matter, n) })
		}
		if idle := idleMessage.MatchString(line) && (last || !strings.HasPrefix(lines[i+1], " ")); !drops && !idle {
			kept = append(kept, line)
		}
	}
	return kept
}

// nodesIn returns the nodes that a line of a transcript names.
func nodesIn(line string) (all []string) {
	for _, m := range nodeOfLine.FindAllStringSubmatch(line, -1) {
		all = append(all, m[1]+m[2]+m[3])
	}
	return all
}

// sameKind reports whether two broken invariants are the same but for names and numbers.
func sameKind(a, b string) bool { return letters(a) == letters(b) }

// letters returns the words of a text that have neither digits nor capitals.
func letters(text string) string {
	var out, word []byte
	plain := true
	for i := 0; i <= len(text); i++ {
		if i == len(text) || text[i] == ' ' {
			if plain {
				out = append(append(out, word...), ' ')
			}
			word, plain = word[:0], true
			continue
		}
		if c := text[i]; c < 'a' || c > 'z' {
			plain = false
		}
		word = append(word, text[i])
	}
	return string(out)
}
