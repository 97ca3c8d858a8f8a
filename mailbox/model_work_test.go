package mailbox_test

import (
	"slices"

	"pgregory.net/rapid"

	"parley"
	"parley/capabilities"
	"parley/events"
	"parley/mailbox"
)

// modelProgram is the program of an agent: one run at a time, each for the message that has waited longest.
type modelProgram struct {
	status  string
	waiting []capabilities.ID
	run     capabilities.ID
	first   int // the first message of the run
}

// receive adds a received message. If the agent has a program, the message gets a run.
func (p *modelAgent) receive(msg modelMessage) {
	p.mail = append(p.mail, msg)
	if p.program != nil && msg.form == nil {
		p.program.waiting = append(p.program.waiting, msg.id)
	}
}

// agentWithProgram draws an agent, mostly one with a program.
func (m *model) agentWithProgram(t *rapid.T) (*modelAgent, *modelProgram) {
	p := m.agent("c")
	if rapid.IntRange(0, 7).Draw(t, "who") == 7 {
		p = m.anyAgent(t)
	}
	if p.program == nil {
		return p, &modelProgram{}
	}
	return p, p.program
}

func (m *model) run(t *rapid.T) {
	p, j := m.agentWithProgram(t)
	c := mailbox.StartRun{Unprompted: rapid.Bool().Draw(t, "unprompted")}
	evs, _ := m.do(t, p.name, c, "")
	if p.program == nil || !j.run.IsZero() || len(j.waiting) == 0 && !c.Unprompted {
		if len(evs) != 0 {
			t.Fatalf("%s, without a message: %v", p.name, evs)
		}
		return
	}
	e := evs[0].(*events.RunStarted)
	var want capabilities.ID
	if len(j.waiting) > 0 {
		want, j.waiting = j.waiting[0], j.waiting[1:]
	}
	if e.Prompt != want || len(evs) != 1 {
		t.Fatalf("%s runs for %s, want %s", p.name, e.Prompt, want)
	}
	j.status, j.run, j.first = mailbox.Running, e.Run, len(p.mail)
}

func (m *model) runEnds(t *rapid.T) {
	p, j := m.agentWithProgram(t)
	end := mailbox.EndRun{Run: j.run, Error: rapid.SampledFrom([]string{"", "broken", mailbox.Interrupted}).Draw(t, "error")}
	stale := rapid.IntRange(0, 3).Draw(t, "stale") == 3
	if stale {
		end.Run = m.States[p.name].ID
	}
	evs, _ := m.do(t, p.name, end, "")
	if stale || j.run.IsZero() {
		if len(evs) != 0 {
			t.Fatalf("the end of an unknown run: %v", evs)
		}
		return
	}
	j.run, j.status = capabilities.ID{}, mailbox.Idle
	if end.Error != "" {
		j.status = mailbox.Failed
	}
}

// interrupt ends a run, its forms, and some earlier ones.
func (m *model) interrupt(t *rapid.T) {
	p, j := m.agentWithProgram(t)
	var also []capabilities.ID
	for _, f := range m.forms {
		if f.asker == p.name && rapid.IntRange(0, 3).Draw(t, "also") == 0 {
			also = append(also, f.id)
		}
	}
	by := m.States[p.name].Profile.Host
	evs, _ := m.do(t, p.name, mailbox.InterruptRun{By: by, Also: also}, "")
	if j.run.IsZero() {
		if len(evs) != 0 {
			t.Fatalf("interrupted without a run: %v", evs)
		}
		return
	}
	if e, ok := evs[0].(*events.RunEnded); !ok || e.By != by {
		t.Fatalf("interrupted by %v: %+v", by, evs[0])
	}
	j.run, j.status = capabilities.ID{}, mailbox.Idle
	for i, msg := range p.mail {
		f := msg.form
		if f != nil && f.asker == p.name && f.outcome == "" && (i >= j.first || slices.Contains(also, f.id)) {
			m.ended(f, parley.AlreadyCancelled, p.name, "")
		}
	}
}

// checkJob compares the runs of a mailbox with the model. It returns the number of unfinished messages.
func (m *model) checkJob(t *rapid.T, p *modelAgent) (unfinished int) {
	s := m.States[p.name]
	j := p.program
	if j == nil {
		j = &modelProgram{status: mailbox.Idle}
	}
	var waiting []capabilities.ID
	for _, msg := range s.Runs.Prompts() {
		waiting = append(waiting, msg.ID())
	}
	run, running := s.Runs.Current()
	if !slices.Equal(waiting, j.waiting) || running != !j.run.IsZero() || run.Run != j.run || s.Profile.Status != j.status {
		t.Fatalf("%s is %s, running %v, %v queued; want %+v", p.name, s.Profile.Status, running, waiting, j)
	}
	unfinished = len(waiting)
	if running {
		unfinished++
	}
	status, over := s.Finish()
	if over != (unfinished == 0) || over && (status == mailbox.Failed) != (j.status == mailbox.Failed) {
		t.Fatalf("%s has finished: %v, %s; want %+v", p.name, over, status, j)
	}
	return unfinished
}
