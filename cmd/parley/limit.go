package main

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"time"

	"parley"
	"parley/gateway"
)

// limitFlag is the option --limit.
type limitFlag struct{ gateway.Limits }

func (l *limitFlag) String() string { return l.Limits.String() }
func (l *limitFlag) Type() string   { return "stringArray" }

// Set adds key=value pairs to those given before.
func (l *limitFlag) Set(text string) error {
	more, err := gateway.ParseLimits(text)
	if err != nil {
		return err
	}
	if l.Limits == nil {
		l.Limits = gateway.Limits{}
	}
	maps.Copy(l.Limits, more)
	return nil
}

// limitsHelp lists the keys of --limit.
func limitsHelp() string {
	var b strings.Builder
	b.WriteString("--limit keys and their defaults:\n")
	for _, k := range gateway.LimitKeys() {
		fmt.Fprintf(&b, "  %-20s %-10d %s\n", k.Key, k.Default, k.Help)
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// checkLimits warns of limits that are nearly used up, or for which something was refused.
func (p *program) checkLimits(ctx context.Context) (string, string) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	status, err := p.status(ctx)
	if parley.CodeOf(err) == parley.NotRunning {
		return fine, "no node runs"
	}
	if err != nil {
		return bad, err.Error()
	}
	var short []string
	for _, l := range status.Limits {
		if l.Refused > 0 || 10*l.Now > 9*l.Limit {
			short = append(short, fmt.Sprintf("%s of %s: %d of %d, %d refused", l.Name, l.For, l.Now, l.Limit, l.Refused))
		}
	}
	if len(short) > 0 {
		return dubious, strings.Join(short, "; ") + ": parley restart --limit raises them"
	}
	return fine, fmt.Sprintf("%d, none met", len(status.Limits))
}
