package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"os/signal"

	"parley"
	"parley/gateway/client"
)

func main() {
	if len(os.Args) != 2 {
		log.Fatal("usage: answer SOCKET")
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1]); err != nil && ctx.Err() == nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, socket string) error {
	c, err := client.Connect(ctx, client.Options{Socket: socket})
	if err != nil {
		return err
	}
	defer c.Close()
	for m, err := range c.Follow(ctx, client.View{Pending: true}, client.Cursor("")) {
		if err != nil {
			return err
		}
		if len(m.Fields) != 1 || m.Fields[0].Type != "number" {
			continue
		}
		_, err := c.Answer(ctx, m.ID(), map[string]any{m.Fields[0].Name: 42})
		if errors.Is(err, parley.Refuse(parley.AlreadyAnswered, "")) {
			continue // somebody was faster
		}
		if err != nil {
			return err
		}
		fmt.Printf("answered %s of %s\n", m.Fields[0].Name, m.FromName)
	}
	return nil
}
