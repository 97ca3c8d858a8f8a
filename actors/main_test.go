package actors

import (
	"fmt"
	"os"
	"testing"

	"go.uber.org/goleak"
)

// objectStoreLeft is the function of a goroutine that the NATS client can leak. It leaks if an object is stored before the
// goroutine has started.
const objectStoreLeft = "github.com/nats-io/nats.go/jetstream.(*jetStream).resetPendingAcksOnReconnect"

func TestMain(m *testing.M) {
	if folder := os.Getenv(loadedNodeEnv); folder != "" {
		runLoadedNode(folder)
	}
	if folder := os.Getenv(programNodeEnv); folder != "" {
		runProgramNode(folder)
	}
	if folder := os.Getenv(promptNodeEnv); folder != "" {
		runPromptNode(folder)
	}
	if folder := os.Getenv(leasingNodeEnv); folder != "" {
		runLeasingNode(folder)
	}
	if folder := os.Getenv(postingNodeEnv); folder != "" {
		runPostingNode(folder)
	}
	if folder := os.Getenv(usingNodeEnv); folder != "" {
		runUsingNode(folder)
	}
	if folder := os.Getenv(queueingNodeEnv); folder != "" {
		runQueueingNode(folder)
	}
	if folder := os.Getenv(mandatedNodeEnv); folder != "" {
		runMandatedNode(folder)
	}
	if folder := os.Getenv(signedNodeEnv); folder != "" {
		runSignedNode(folder)
	}
	if folder := os.Getenv(attachingNodeEnv); folder != "" {
		runAttachingNode(folder)
	}
	if folder := os.Getenv(reviewedNodeEnv); folder != "" {
		runReviewedNode(folder)
	}
	if folder := os.Getenv(offeringNodeEnv); folder != "" {
		runOfferingNode(folder)
	}
	if spec := os.Getenv(archiveNodeEnv); spec != "" {
		runArchiveNode(spec)
	}
	if spec := os.Getenv(nightEnv); spec != "" {
		runNight(spec)
	}
	if spec := os.Getenv(processEnv); spec != "" {
		runProcess(spec)
	}
	goleak.VerifyTestMain(m, goleak.IgnoreTopFunction(objectStoreLeft), goleak.Cleanup(func(code int) {
		for _, pid := range descendantsOf(os.Getpid()) {
			fmt.Println("a process was left:", commandLine(pid))
			code = 1
		}
		os.Exit(code)
	}))
}
