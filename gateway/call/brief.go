package call

import (
	"fmt"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"parley/gateway/call/risk"
)

// Brief is a call in one line without its verb: the second line of a row. Where there is no room for all of it, the front is
// shortened and the end stays.
type Brief struct {
	Front string // of 400 characters at most
	End   string // of 80 at most, from the riskiest words on; "" if they are near the beginning, or there are none
}

// Bounds of a Brief.
const (
	maxFront = 400 // characters
	maxEnd   = 80
	nearest  = 24 // bytes from the beginning, which are shown in any case
)

// Text returns all of the line.
func (b Brief) Text() string {
	if b.End == "" {
		return b.Front
	}
	return b.Front + " " + b.End
}

// Fit returns the line in so many characters.
func (b Brief) Fit(characters int) string {
	if text := b.Text(); len([]rune(text)) <= characters || b.End == "" {
		return clip(text, max(characters-1, 1))
	}
	end := []rune(b.End)
	if len(end)+4 > characters {
		return "… " + clip(b.End, max(characters-3, 1))
	}
	return clip(b.Front, characters-len(end)-2) + " " + b.End
}

// Brief returns the call in one line.
func (r Reading) Brief() Brief {
	if r.call.Use != nil {
		return Brief{Front: clip(r.Asker("")+": "+r.Verb+" "+r.Object, maxFront)}
	}
	switch r.Verb {
	case "run":
		return r.briefCommand()
	case "edit", "write":
		files, added, removed := map[string]bool{}, 0, 0
		for _, b := range r.Blocks {
			if b.Kind == Diff || b.Kind == File {
				files[b.Path], added, removed = true, added+b.Added, removed+b.Removed
			}
		}
		text := fmt.Sprintf("%s +%d", r.Object, added)
		if r.Verb == "edit" {
			text += fmt.Sprintf(" −%d", removed)
		}
		return Brief{Front: text}
	case "read":
		return Brief{Front: r.Object}
	}
	if plan := r.Plan(); plan != "" {
		return Brief{Front: clip("Plan: "+headOf(plan), maxFront)}
	}
	return Brief{Front: clip(strings.TrimPrefix(r.Line, "Use "), maxFront)}
}

// Plan returns the plan, in Markdown, that a call presents to be approved; "" for any other call.
func (r Reading) Plan() string {
	if r.call.Use != nil || r.call.Tool != "ExitPlanMode" {
		return ""
	}
	for _, b := range r.Blocks {
		for _, v := range b.Values {
			if v.Key == "plan" {
				return strings.TrimSpace(v.Text)
			}
		}
	}
	return ""
}

// headOf returns the first line of a plan without the marks of a heading, and without the word for what it is.
func headOf(plan string) string {
	line, _, _ := strings.Cut(plan, "\n")
	line = strings.TrimSpace(strings.Trim(strings.TrimSpace(line), "#*"))
	if rest, ok := strings.CutPrefix(line, "Plan:"); ok && rest != "" {
		line = strings.TrimSpace(rest)
	}
	return line
}

// briefCommand returns a command line without the shell around it.
func (r Reading) briefCommand() Brief {
	var spans []Span
	for _, b := range r.Blocks {
		if b.Kind != Command {
			continue
		}
		for i, l := range b.Lines {
			if i > 0 {
				spans = append(spans, Span{Text: " "})
			}
			spans = append(spans, l.Spans...)
		}
		break
	}
	var text strings.Builder
	at, level := 0, risk.None // of the riskiest words that come first
	for _, s := range spans {
		if s.Risk > level {
			at, level = len(oneLine(text.String())), s.Risk
		}
		if text.Len() < 8*maxFront || s.Risk > risk.None {
			text.WriteString(s.Text)
		}
	}
	whole := strings.Join(strings.Fields(text.String()), " ")
	if script := unwrapped(whole); script != whole {
		return Brief{Front: clip(strings.Join(strings.Fields(script), " "), maxFront)}
	}
	if level == risk.None || at < nearest || at >= len(whole) {
		return Brief{Front: clip(whole, maxFront)}
	}
	return Brief{Front: clip(strings.TrimSpace(whole[:at]), maxFront), End: clip(strings.TrimSpace(whole[at:]), maxEnd)}
}

// unwrapped returns the command line that a shell is given; the line itself if it is no such.
func unwrapped(line string) string {
	file := risk.Parse(line)
	if file == nil || len(file.Stmts) != 1 {
		return line
	}
	c, ok := file.Stmts[0].Cmd.(*syntax.CallExpr)
	if !ok || len(file.Stmts[0].Redirs) > 0 || len(c.Assigns) > 0 || len(c.Args) != 3 || !isShell(c.Args[0].Lit()) || c.Args[1].Lit() != "-c" && c.Args[1].Lit() != "-lc" || len(c.Args[2].Parts) != 1 {
		return line
	}
	switch script := c.Args[2].Parts[0].(type) {
	case *syntax.SglQuoted:
		if !script.Dollar {
			return script.Value
		}
	case *syntax.DblQuoted:
		if len(script.Parts) == 1 {
			if lit, ok := script.Parts[0].(*syntax.Lit); ok && !strings.Contains(lit.Value, `\`) {
				return lit.Value
			}
		}
	}
	return line
}
