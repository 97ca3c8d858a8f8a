package risk

import (
	"cmp"
	"slices"
	"strings"
)

// Level is how much may go wrong.
type Level uint8

// The levels.
const (
	None    Level = iota // nothing that is known
	Notable              // it reaches further than the files of its folder, or deletes some of them
	High                 // it can hardly be undone, it reaches all of a computer or what others depend on, or it cannot be read
)

// String returns the level in words; "" for None.
func (l Level) String() string {
	switch l {
	case High:
		return "high risk"
	case Notable:
		return "risk"
	}
	return ""
}

// Finding is one thing that may go wrong, or a note.
type Finding struct {
	Level Level
	Mark  string // the effect in two or three words, as in "Runs as root"; "" for a note
	Text  string // a sentence that names what is touched, with words of the call

	// The words of a command line that it is about, in bytes of the line; both are 0 if there are none.
	From, To int
}

// Findings are what was found, the highest level first.
type Findings []Finding

// Level returns the highest level.
func (f Findings) Level() Level {
	if len(f) == 0 {
		return None
	}
	return f[0].Level
}

// Marks returns the marks, each once, the highest level first.
func (f Findings) Marks() []string {
	var marks []string
	for _, one := range f {
		if one.Mark != "" && !slices.Contains(marks, one.Mark) {
			marks = append(marks, one.Mark)
		}
	}
	return marks
}

// Bounds of findings.
const (
	maxFindings = 12  // that are kept, of the highest levels
	maxFound    = 256 // that are collected
	maxNamed    = 80  // characters of a word in a sentence
)

// list collects findings, each once.
type list struct{ all Findings }

// has reports whether a command has a mark already.
func (l *list) has(mark, command string) bool {
	return slices.ContainsFunc(l.all, func(f Finding) bool { return f.Mark == mark && strings.HasSuffix(f.Text, oneLine(": "+command+".")) })
}

func (l *list) add(f Finding) {
	f.Text = oneLine(f.Text)
	if slices.ContainsFunc(l.all, func(o Finding) bool { return o.Mark == f.Mark && o.Text == f.Text }) {
		return
	}
	if len(l.all) < maxFound {
		l.all = append(l.all, f)
		return
	}
	for i, o := range l.all { // a worse one takes the place of one that is not as bad
		if o.Level < f.Level {
			l.all[i] = f
			return
		}
	}
}

// sorted returns the findings.
func (l *list) sorted() Findings {
	slices.SortStableFunc(l.all, func(a, b Finding) int { return cmp.Compare(b.Level, a.Level) })
	return l.all[:min(len(l.all), maxFindings)]
}

// oneLine returns a text with each run of blanks as one space.
func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }

// short returns a word as a sentence names it.
func short(word string) string {
	word = oneLine(word)
	at := 0
	for i := range word {
		if at++; at > maxNamed {
			return word[:i] + "…"
		}
	}
	return word
}
