package gateway

import (
	"strings"

	"parley/capabilities"
)

// held is something that an agent holds, as the list of agents shows it.
type held struct {
	Name    string
	ID      capabilities.ID
	Here    bool // it is an agent of this node that the reader may act as
	Waiting int  // forms that wait for its answer
}

// agents lists the agents that who is signed in holds.
func (v *viewing) agents() error {
	if err := v.readsOnly(); err != nil {
		return err
	}
	ctx := v.r.Context()
	who, err := v.s.locals(ctx)
	if err != nil {
		return err
	}
	f := layout{Title: "Agents"}
	var list []held
	here := map[capabilities.ID]bool{}
	for _, l := range who {
		waiting, err := waitingFor(ctx, l, who[0])
		if err != nil {
			return err
		}
		f.Count += len(waiting)
		here[l.agent.ID()] = true
		list = append(list, held{Name: l.name, ID: l.agent.ID(), Here: true, Waiting: len(waiting)})
	}
	elsewhere, err := v.elsewhere(here)
	if err != nil {
		return err
	}
	f.Main = append(list, elsewhere...)
	return v.show(200, "agents.html", f)
}

// elsewhere gives the agents that are held by name, and are not among those here.
func (v *viewing) elsewhere(here map[capabilities.ID]bool) ([]held, error) {
	ctx := v.r.Context()
	names, err := v.agent.Names(ctx, "")
	if err != nil {
		return nil, err
	}
	var list []held
	for _, name := range names[:min(len(names), maxNamed)] {
		if strings.HasPrefix(name, "@") {
			continue
		}
		value, err := v.agent.Show(ctx, name, false)
		if err != nil {
			return nil, err
		}
		r, ok := value.AsRef()
		if ok && r.Kind == capabilities.KindAgent && !here[r.Target] {
			list = append(list, held{Name: name, ID: r.Target})
		}
	}
	return list, nil
}
