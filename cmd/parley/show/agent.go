package show

import (
	"parley/actors/view"
	"parley/capabilities"
	"parley/gateway/queue"
)

// Asker is what waits for a person of one agent.
type Asker = queue.Asker

// Askers returns what waits for a person of each agent, of messages that wait.
func Askers(waiting []view.Message, now capabilities.Time) map[capabilities.ID]Asker {
	var readings queue.Readings
	return queue.Askers(waiting, &readings, now)
}
