package terminal

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/charmbracelet/x/ansi"
)

// Screen is the place that lines are shown on: a terminal, or, as the zero value, a file or a pipe. A file gets whole
// lines, exact times and no colours.
type Screen struct {
	Width int // in cells; 0 for a file
	Color bool
	IDs   bool // IDs are shown whole, beside names too
	Now   time.Time
}

// Style is the meaning of a text, which a terminal shows by a colour.
type Style string

// The styles, as the parameters of a terminal's escape sequences.
const (
	Strong  Style = "1"
	Faint   Style = "2"
	Wrong   Style = "31" // denied, removed
	Right   Style = "32" // allowed, added
	Waiting Style = "33" // for the reader
	Place   Style = "36" // a path, a place in a file
)

// Paint returns a text in a style. The text must be Visible.
func (s Screen) Paint(style Style, text string) string {
	if !s.Color || text == "" {
		return text
	}
	return "\x1b[" + string(style) + "m" + text + "\x1b[0m"
}

// Fit returns a line that is cut to the width of the terminal.
func (s Screen) Fit(line string) string {
	if s.Width == 0 {
		return line
	}
	return ansi.Truncate(line, s.Width, "…")
}

// FitBetween returns a line of three parts. The middle is cut so that the line fits, and then the last.
func (s Screen) FitBetween(first, middle, last string) string {
	if s.Width == 0 {
		return first + middle + last
	}
	room := max(s.Width-ansi.StringWidth(first)-ansi.StringWidth(last), s.Width/3)
	return s.Fit(first + ansi.Truncate(middle, room, "…") + last)
}

// Squeeze returns a name in so many cells. Where it is longer its middle is left out, since names often differ at their ends alone.
func Squeeze(name string, cells int) string {
	width := ansi.StringWidth(name)
	if width <= cells || cells < 5 {
		return ansi.Truncate(name, cells, "…")
	}
	end := cells * 3 / 5
	return ansi.Truncate(name, cells-end, "…") + ansi.TruncateLeft(name, width-end, "")
}

// Wrap returns a line as lines of a width. It breaks anywhere, and keeps every character.
func Wrap(line string, width int) []string {
	return strings.Split(ansi.Hardwrap(line, max(width, 1), true), "\n")
}

// Time returns a time: "3m ago" on a terminal, and in a file the exact text.
func (s Screen) Time(at time.Time, exact string) string {
	if s.Width == 0 || at.IsZero() {
		return exact
	}
	return Ago(at, s.Now)
}

// Moment returns a time that comes as a clock shows it, on a terminal: 18:00, 2 Jan 18:00 on another day, or 2 Jan 2027
// 18:00 in another year. Elsewhere it is exact.
func (s Screen) Moment(at time.Time, exact string) string {
	if s.Width == 0 {
		return exact
	}
	at = at.In(s.Now.Location())
	switch {
	case at.Year() != s.Now.Year():
		return at.Format("2 Jan 2006 15:04")
	case at.YearDay() != s.Now.YearDay():
		return at.Format("2 Jan 15:04")
	}
	return at.Format("15:04")
}

// Ago returns a time in relation to another, as "3m ago" or "in 2h". One to come in less than ten hours has its minutes,
// as "in 1h 23m". It returns the date of a time that is a month away.
func Ago(at, now time.Time) string {
	d := now.Sub(at)
	future := d < 0
	d = max(d, -d)
	var long string
	switch {
	case d < time.Second:
		return "now"
	case d < time.Minute:
		long = fmt.Sprintf("%ds", d/time.Second)
	case d < time.Hour:
		long = fmt.Sprintf("%dm", d/time.Minute)
	case d < 24*time.Hour:
		long = fmt.Sprintf("%dh", d/time.Hour)
		if minutes := d % time.Hour / time.Minute; future && minutes > 0 && d < 10*time.Hour {
			long += fmt.Sprintf(" %dm", minutes)
		}
	case d < 30*24*time.Hour:
		long = fmt.Sprintf("%dd", d/(24*time.Hour))
	default:
		return at.In(now.Location()).Format(time.DateOnly)
	}
	if future {
		return "in " + long
	}
	return long + " ago"
}

// Column is a column of a table.
type Column struct {
	Name   string
	Shrink bool // cut it where the table does not fit the terminal
	Drop   bool // leave it out on a terminal where all of its cells are Empty
	Ends   bool // it has names, which are cut in their middles, and for which there is room before any Spare column
	Spare  int  // leave it out on a terminal that has no room for the names, the column with the highest number first; 0 for never
}

// Empty is the cell of a table in which nothing stands.
const Empty = "-"

// Least widths of a column that is cut, and of names as long as a Spare column is there.
const (
	minColumn = 6
	minNames  = 16
)

// Table returns a table. The cells of a row are Visible, and may be painted. Without headed it has no line of names.
func (s Screen) Table(columns []Column, rows [][]string, headed bool) string {
	columns, rows = pick(columns, rows, func(i int, c Column) bool {
		return s.Width == 0 || !c.Drop || slices.ContainsFunc(rows, func(r []string) bool { return r[i] != Empty })
	})
	columns, rows, widths := s.fit(columns, rows, headed)
	var b strings.Builder
	line := func(cells []string, style Style) {
		var l strings.Builder
		for i, cell := range cells {
			if columns[i].Ends {
				cell = Squeeze(cell, widths[i])
			}
			cell = ansi.Truncate(cell, widths[i], "…")
			if style != "" {
				cell = s.Paint(style, cell)
			}
			l.WriteString(cell)
			if i < len(cells)-1 {
				l.WriteString(strings.Repeat(" ", widths[i]-ansi.StringWidth(cell)+2))
			}
		}
		b.WriteString(s.Fit(l.String()) + "\n")
	}
	if headed {
		names := make([]string, len(columns))
		for i, c := range columns {
			names[i] = c.Name
		}
		line(names, Faint)
	}
	for _, r := range rows {
		line(r, "")
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// pick returns a table of some columns.
func pick(columns []Column, rows [][]string, keeps func(i int, c Column) bool) ([]Column, [][]string) {
	var kept []Column
	cells := make([][]string, len(rows))
	for i, c := range columns {
		if !keeps(i, c) {
			continue
		}
		kept = append(kept, c)
		for n, r := range rows {
			cells[n] = append(cells[n], r[i])
		}
	}
	return kept, cells
}

// fit returns a table with the widths of its columns, as far as it fits the terminal: without the Spare columns for which there is no room.
func (s Screen) fit(columns []Column, rows [][]string, headed bool) ([]Column, [][]string, []int) {
	widths := make([]int, len(columns))
	for i, c := range columns {
		if headed {
			widths[i] = len(c.Name)
		}
		for _, r := range rows {
			widths[i] = max(widths[i], ansi.StringWidth(r[i]))
		}
	}
	whole := slices.Clone(widths)
	s.shrink(columns, widths)
	spare := 0
	for _, c := range columns {
		spare = max(spare, c.Spare)
	}
	cuts := slices.IndexFunc(columns, func(c Column) bool { return c.Ends })
	if spare == 0 || cuts < 0 || widths[cuts] >= min(whole[cuts], minNames) {
		return columns, rows, widths
	}
	columns, rows = pick(columns, rows, func(_ int, c Column) bool { return c.Spare != spare })
	return s.fit(columns, rows, headed)
}

// shrink narrows columns until the table fits, the widest first.
func (s Screen) shrink(columns []Column, widths []int) {
	if s.Width == 0 {
		return
	}
	over := 2*(len(widths)-1) - s.Width
	for _, w := range widths {
		over += w
	}
	for ; over > 0; over-- {
		widest := -1
		for i, c := range columns {
			if c.Shrink && widths[i] > minColumn && (widest < 0 || widths[i] > widths[widest]) {
				widest = i
			}
		}
		if widest < 0 {
			return
		}
		widths[widest]--
	}
}

// UnixTime returns the time that a number stands for: a Unix time in seconds, or in milliseconds if it has 13 digits. It
// reports false for a number that is more likely a duration, and for other text.
func UnixTime(words string) (time.Time, bool) {
	n, err := strconv.ParseInt(words, 10, 64)
	switch {
	case err != nil || words[0] == '+':
	case len(words) == 10 && n >= 1e9:
		return time.Unix(n, 0), true
	case len(words) == 13 && n >= 1e12:
		return time.UnixMilli(n), true
	}
	return time.Time{}, false
}

// Later returns the moment that a person means with some words at a time: a duration from then, as 2h or 3d, the next
// time of day, as 14:00, or tomorrow at nine. A date at nine, a moment and a Unix time are offered too. It is the zero time for off.
func Later(words string, now time.Time) (time.Time, error) {
	on := func(day time.Time, hour, minute int) time.Time {
		return time.Date(day.Year(), day.Month(), day.Day(), hour, minute, 0, 0, now.Location())
	}
	switch words {
	case "off":
		return time.Time{}, nil
	case "tomorrow":
		return on(now.AddDate(0, 0, 1), 9, 0), nil
	}
	if clock, err := time.Parse("15:04", words); err == nil {
		at := on(now, clock.Hour(), clock.Minute())
		if !at.After(now) {
			at = on(now.AddDate(0, 0, 1), clock.Hour(), clock.Minute())
		}
		return at, nil
	}
	if day, err := time.Parse(time.DateOnly, words); err == nil {
		return on(day, 9, 0), nil
	}
	if at, err := time.Parse(time.RFC3339Nano, words); err == nil {
		return at, nil
	}
	if at, ok := UnixTime(words); ok {
		return at, nil
	}
	if days, err := strconv.ParseUint(strings.TrimSuffix(words, "d"), 10, 12); err == nil && strings.HasSuffix(words, "d") {
		return now.AddDate(0, 0, int(days)), nil
	}
	if d, err := time.ParseDuration(words); err == nil && d >= 0 {
		return now.Add(d), nil
	}
	return time.Time{}, fmt.Errorf("%q is no time: want 2h, 3d, 14:00, tomorrow, 2026-01-31, 2026-01-31T12:00:00Z or off", words)
}
