package show

import (
	"parley/actors/view"
	"parley/capabilities"
	"parley/gateway/queue"
)

// States returns what has the states of agents for a person, for whom messages wait.
func States(waiting []view.Message, now capabilities.Time) func(view.AgentStatus) view.AgentState {
	var readings queue.Readings
	askers := queue.Askers(waiting, &readings, now)
	return func(s view.AgentStatus) view.AgentState { return askers[s.ID].State(s) }
}
