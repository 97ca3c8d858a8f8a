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
	goleak.VerifyTestMain(m)
}
