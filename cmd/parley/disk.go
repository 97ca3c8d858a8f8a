package main

import (
	"context"
	"errors"
	"io"
	"os"
	"slices"
	"time"
)

// rawBlock is what is appended in one raw write: about a commit.
const rawBlock = 4 << 10

// diskRate is how fast a disk makes small appends durable, one after the other: what bounds every program
// that keeps its word.
type diskRate struct {
	times []time.Duration
	spent time.Duration
}

// measureDisk appends and syncs in a file of its own for so long.
func measureDisk(ctx context.Context, folder string, long time.Duration) (rate diskRate, err error) {
	f, err := os.CreateTemp(folder, ".parley-disk-")
	if err != nil {
		return rate, unwritable(folder, err)
	}
	defer func() { err = errors.Join(err, f.Close(), os.Remove(f.Name())) }()
	block := make([]byte, rawBlock)
	for began := time.Now(); rate.spent < long && ctx.Err() == nil; rate.spent = time.Since(began) {
		start := time.Now()
		if _, err := f.Write(block); err != nil {
			return rate, err
		}
		if err := datasync(f); err != nil {
			return rate, err
		}
		rate.times = append(rate.times, time.Since(start))
		if len(rate.times)%rawMost == 0 {
			if err := emptied(f); err != nil {
				return rate, err
			}
		}
	}
	return rate, ctx.Err()
}

// rawMost is how many appends a file takes before it is emptied: a fast disk should not be filled.
const rawMost = 16 << 20 / rawBlock

func emptied(f *os.File) error {
	if err := f.Truncate(0); err != nil {
		return err
	}
	_, err := f.Seek(0, io.SeekStart)
	return err
}

// and puts two measurements together.
func (r diskRate) and(o diskRate) diskRate {
	return diskRate{times: slices.Concat(r.times, o.times), spent: r.spent + o.spent}
}

func (r diskRate) perSecond() float64 {
	if r.spent == 0 {
		return 0
	}
	return float64(len(r.times)) / r.spent.Seconds()
}

func (r diskRate) p50() time.Duration { return percentile(r.times, 50) }

// percentile gives the time that so many of a hundred are not over.
func percentile(times []time.Duration, percent int) time.Duration {
	if len(times) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(times))
	return sorted[min(len(sorted)*percent/100, len(sorted)-1)]
}
