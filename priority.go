package parley

import "parley/events"

// Priority is how soon a message should be seen: urgent, normal or low. "" is normal.
type Priority = events.Priority
