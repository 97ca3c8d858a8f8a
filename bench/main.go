package main

import (
	"context"
	"flag"
	"fmt"
	"log"
	"os"
	"os/signal"
	"slices"
	"strings"
	"time"
)

func main() {
	log.SetFlags(0)
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt)
	defer cancel()
	var o options
	var only, doc string
	flag.DurationVar(&o.turn, "turn", 2*time.Second, "time of a system's turn")
	flag.IntVar(&o.rounds, "rounds", 3, "turns of each system")
	flag.IntVar(&o.callers, "callers", 64, "callers at once, beside a run with one")
	flag.StringVar(&o.folder, "folder", "", "folder on the disk that is measured (default: that of temporary files)")
	flag.StringVar(&only, "only", "", "systems to measure, separated by commas (default: all)")
	flag.StringVar(&doc, "doc", "", "document whose part between the marks is replaced by the results")
	flag.Parse()
	if only != "" {
		o.only = strings.Split(only, ",")
	}
	if err := run(ctx, o, doc); err != nil {
		log.Fatal(err)
	}
}

// options are the options of a run.
type options struct {
	turn    time.Duration
	rounds  int
	callers int
	folder  string
	only    []string
}

func run(ctx context.Context, o options, doc string) (err error) {
	if o.folder, err = os.MkdirTemp(o.folder, "parley-peers-"); err != nil {
		return err
	}
	defer os.RemoveAll(o.folder) //nolint:errcheck // a temporary folder
	results, err := measureAll(ctx, o)
	if err != nil {
		return err
	}
	text := report(o, results)
	fmt.Print(text)
	if doc == "" {
		return nil
	}
	return replacePart(doc, text)
}

// measureAll starts the systems, and gives them turns.
func measureAll(ctx context.Context, o options) ([]*result, error) {
	var all []*result
	for _, s := range systems() {
		if o.only != nil && !slices.Contains(o.only, s.name) {
			continue
		}
		r := &result{system: s}
		log.Printf("starting %s", s.name)
		if r.running, r.missing = s.start(ctx, o); r.missing != nil {
			log.Printf("%s is left out: %v", s.name, r.missing)
		} else {
			defer r.running.close()
		}
		all = append(all, r)
	}
	for _, callers := range []int{1, o.callers} {
		for round := range o.rounds + 1 {
			for _, r := range all {
				if r.missing != nil {
					continue
				}
				t, err := takeTurn(ctx, r.running, callers, o.turn)
				if err != nil {
					return nil, fmt.Errorf("%s with %d callers: %w", r.system.name, callers, err)
				}
				if round == 0 {
					continue // warms up
				}
				log.Printf("%-10s %2d callers: %6.0f cycles a second", r.system.name, callers, t.rate())
				if callers == 1 {
					r.alone.add(t)
				} else {
					r.together.add(t)
				}
			}
		}
	}
	return all, nil
}
