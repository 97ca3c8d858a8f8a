package actors

import (
	"os"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	if folder := os.Getenv(victimFolder); folder != "" {
		runVictim(folder)
	}
	if spec := os.Getenv(farawayNode); spec != "" {
		runFaraway(spec)
	}
	goleak.VerifyTestMain(m)
}
