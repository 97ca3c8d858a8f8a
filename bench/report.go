package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"
	"time"
)

// The marks of the part of a document that a run replaces.
const (
	partBegins = "<!-- peers: begins; written by bench -->\n"
	partEnds   = "<!-- peers: ends -->\n"
)

// report returns the results as tables and plots in Markdown.
func report(o options, results []*result) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d processors, %d rounds of %v, the systems in turns.\n\n", runtime.NumCPU(), o.rounds, o.turn)
	b.WriteString("### How long does one caller wait?\n\n| system | p50 | p99 | times of a raw append |\n|---|---|---|---|\n")
	appended := time.Duration(0)
	for _, r := range results {
		if r.system.name == "appends" {
			appended = r.alone.percentile(50)
		}
	}
	for _, r := range results {
		if r.missing == nil {
			fmt.Fprintf(&b, "| %s | %.2f ms | %.1f ms | %s |\n", r.system.name, milliseconds(r.alone.percentile(50)), milliseconds(r.alone.percentile(99)), ratio(float64(r.alone.percentile(50)), float64(appended)))
		}
	}
	fmt.Fprintf(&b, "\n### How much do %d callers get done?\n\n| system | cycles/s | times of Restate | p50 | p99 | server's processor time of a cycle |\n", o.callers)
	b.WriteString("|---|---|---|---|---|---|\n")
	reference := 0.0
	for _, r := range results {
		if r.system.name == "restate" {
			reference = r.together.rate()
		}
	}
	for _, r := range results {
		if r.missing != nil {
			continue
		}
		processor := "-"
		if r.running.process() != 0 {
			processor = fmt.Sprintf("%d µs", r.together.processorTime().Microseconds())
		}
		fmt.Fprintf(&b, "| %s | %.0f | %s | %.2f ms | %.1f ms | %s |\n", r.system.name, r.together.rate(), ratio(r.together.rate(), reference),
			milliseconds(r.together.percentile(50)), milliseconds(r.together.percentile(99)), processor)
	}
	b.WriteString("\n")
	for _, r := range results {
		fmt.Fprintf(&b, "- %s: %s", r.system.name, r.system.how)
		if r.missing != nil {
			fmt.Fprintf(&b, " (left out: %v)", r.missing)
		}
		b.WriteString("\n")
	}
	b.WriteString("\n")
	plot(&b, fmt.Sprintf("Cycles a second, %d callers", o.callers), results, func(r *result) float64 { return r.together.rate() })
	plot(&b, "p50 of a cycle in ms, 1 caller", results, func(r *result) float64 { return milliseconds(r.alone.percentile(50)) })
	return b.String()
}

// ratio returns how many times another value a value is, or a dash if the other was not measured.
func ratio(value, of float64) string {
	if of == 0 {
		return "-"
	}
	return fmt.Sprintf("%.1f", value/of)
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// plot draws bars as a Mermaid chart.
func plot(b *strings.Builder, title string, results []*result, value func(*result) float64) {
	var names, bars []string
	for _, r := range results {
		if r.missing == nil && r.system.name != "appends" {
			names = append(names, r.system.name)
			bars = append(bars, fmt.Sprintf("%.2f", value(r)))
		}
	}
	fmt.Fprintf(b, "```mermaid\nxychart-beta\n  title %q\n  x-axis [%s]\n  bar [%s]\n```\n\n", title, strings.Join(names, ", "), strings.Join(bars, ", "))
}

// replacePart replaces the part of a document between the marks.
func replacePart(name, text string) error {
	was, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	before, rest, begins := bytes.Cut(was, []byte(partBegins))
	_, after, ends := bytes.Cut(rest, []byte(partEnds))
	if !begins || !ends {
		return errors.New(name + " has no marks for the results")
	}
	return os.WriteFile(name, []byte(string(before)+partBegins+"\n"+text+partEnds+string(after)), 0o644)
}
