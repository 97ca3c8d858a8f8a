package gateway

import (
	"parley"
	"parley/actors"
	"parley/gateway/api"
)

// refOf returns the message that a request is about.
func refOf(s api.Subject) (actors.Which, error) {
	switch {
	case s.Number == "" && s.ID == "":
		return "", parley.Refuse(parley.InvalidArgument, "which message? give its number or id")
	case s.Number != "" && s.ID != "":
		return "", parley.Refuse(parley.InvalidArgument, "give a number or an id, not both")
	case s.ID != "":
		return actors.Which(s.ID), nil
	}
	return actors.Which(s.Number), nil
}
