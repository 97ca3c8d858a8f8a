package main

import (
	"context"
	"fmt"
	"log"
	"os"

	"parley/gateway/client"
)

func main() {
	if len(os.Args) != 3 {
		log.Fatal("usage: ask URL KEY, with a token in PARLEY_TOKEN")
	}
	if err := run(context.Background(), os.Args[1], os.Args[2]); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, url, key string) error {
	c, err := client.Connect(ctx, client.Options{URL: url, Token: os.Getenv("PARLEY_TOKEN")})
	if err != nil {
		return err
	}
	defer c.Close()
	asked, err := c.Ask(ctx, client.Form{
		To: "HOST", Key: key, Title: "Deploy build 42", Description: "All tests pass. Where may it go?",
		Fields: []client.Field{
			{Name: "target", Label: "Target", Type: "select", Required: true, Options: []client.Option{{Value: "staging"}, {Value: "production"}}},
			{Name: "replicas", Label: "Replicas", Type: "number"},
		},
	})
	if err != nil {
		return err
	}
	outcome, err := asked.Await(ctx) // through restarts of the node, too
	if err != nil {
		return err
	}
	var answer struct {
		Target   string
		Replicas int
	}
	if err := outcome.Decode(&answer); err != nil { // declined, cancelled and expired are errors
		return err
	}
	_, err = fmt.Printf("deploying to %s with %d replicas\n", answer.Target, answer.Replicas)
	return err
}
