package terminal

import (
	"regexp"
	"strings"
	"sync"
)

// colors is an escape sequence that sets colours and styles of the text after it.
var colors = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`\x1b\[[0-9;:]{0,32}m`) })

// Output returns a line of a program's output as it is safe to print. Colours are kept on a terminal that has them, and
// end with the line; elsewhere they are left out. Any other escape sequence, and one that conceals text, is Visible.
// Tabs stay, because programs align their output by them.
func (s Screen) Output(line string) string {
	var b strings.Builder
	colored := false
	write := func(text string) {
		columns := strings.Split(text, "\t")
		for i, c := range columns {
			columns[i] = Visible(c)
		}
		b.WriteString(strings.Join(columns, "\t"))
	}
	for {
		at := colors().FindStringIndex(line)
		if at == nil {
			break
		}
		write(line[:at[0]])
		sequence := line[at[0]:at[1]]
		switch {
		case conceals(sequence):
			write(sequence)
		case s.Color:
			b.WriteString(sequence)
			colored = true
		}
		line = line[at[1]:]
	}
	write(line)
	if colored {
		b.WriteString("\x1b[0m")
	}
	return b.String()
}

// conceals reports whether a sequence sets a style in which text is not seen. The parameters of a colour, as in 38;5;8, are
// no styles.
func conceals(sequence string) bool {
	parameters := strings.FieldsFunc(sequence[2:len(sequence)-1], func(r rune) bool { return r == ';' })
	for i := 0; i < len(parameters); i++ {
		switch parameter := strings.TrimLeft(parameters[i], "0"); parameter {
		case "8":
			return true
		case "38", "48", "58":
			if i+1 < len(parameters) && parameters[i+1] == "5" {
				i += 2
			} else if i+1 < len(parameters) && parameters[i+1] == "2" {
				i += 4
			}
		}
	}
	return false
}
