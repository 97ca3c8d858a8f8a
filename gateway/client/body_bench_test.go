package client

import (
	"testing"

	"parley"
	"parley/actors/view"
	"parley/capabilities"
	"parley/gateway/api"
	"parley/gateway/mux"
)

// BenchmarkCycle writes and reads all bodies of one cycle: a form, its acceptance, an answer, and the outcome for both.
func BenchmarkCycle(b *testing.B) {
	c := &Client{options: Options{As: "fae"}}
	f := Form{To: "peer", Description: "Configure project settings", Key: "0123456789", Fields: []Field{
		{Name: "projectName", Label: "Project name", Required: true}, {Name: "apiKey", Label: "API key", Required: true},
		{Name: "region", Label: "Region", Type: "select", Options: []Option{{Value: "eu", Label: "Europe"}, {Value: "us"}}},
	}}
	id := capabilities.ID{ULID: [16]byte{1, 2, 3}, Node: capabilities.NodeOf([32]byte{7})}
	values := map[string]capabilities.Value{"projectName": capabilities.String("my-app"), "apiKey": capabilities.String("sk-1234"), "region": capabilities.String("eu")}
	outcome := view.Outcome{Status: view.StatusAnswered, Form: id, Promise: id, By: id, ByName: "peer", At: 1, Values: capabilities.Record(values), Order: []string{"projectName", "apiKey", "region"}}
	for _, part := range []struct {
		name string
		do   func() error
	}{
		{"form", func() error {
			body, err := c.request("form", f)
			if err == nil {
				err = mux.Read(body, new(api.FormRequest))
			}
			return err
		}},
		{"asked", func() error {
			body, err := mux.Append(nil, view.Asked{Form: id, Promise: id, Number: 7})
			if err == nil {
				err = answer{plain: body}.decode("form", new(view.Asked))
			}
			return err
		}},
		{"answer", func() error {
			body, err := c.request("respond_form", api.RespondFormRequest{FormRef: refTo(ID(id.String())), Answer: parley.Answer{Values: values}})
			if err == nil {
				err = mux.Read(body, new(api.RespondFormRequest))
			}
			return err
		}},
		{"outcome", func() error {
			body, err := mux.Append(nil, outcome)
			if err == nil {
				err = answer{plain: body}.decode("await", new(Outcome))
			}
			return err
		}},
	} {
		b.Run(part.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if err := part.do(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
