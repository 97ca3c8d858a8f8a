package bench

import (
	"context"
	"errors"
	"io"
	"os"
	"slices"
	"time"

	"parley/internal/disk"
)

// rawBlock is the size of one raw append: about that of a commit.
const rawBlock = 4 << 10

// DiskRate is how fast a disk makes small appends durable, one after the other. It bounds every program that
// acknowledges only what is on disk.
type DiskRate struct {
	times []time.Duration
	spent time.Duration
}

// MeasureDisk appends and syncs in a file of its own, in a folder, for so long.
func MeasureDisk(ctx context.Context, folder string, long time.Duration) (rate DiskRate, err error) {
	f, err := os.CreateTemp(folder, ".parley-disk-")
	if err != nil {
		return rate, disk.UnwritableFolder(folder, "choose another", err)
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
			if err := empty(f); err != nil {
				return rate, err
			}
		}
	}
	return rate, ctx.Err()
}

// rawMost is the number of appends after which the file is emptied: a fast disk should not be filled.
const rawMost = 16 << 20 / rawBlock

func empty(f *os.File) error {
	if err := f.Truncate(0); err != nil {
		return err
	}
	_, err := f.Seek(0, io.SeekStart)
	return err
}

// and returns two measurements as one.
func (r DiskRate) and(o DiskRate) DiskRate {
	return DiskRate{times: slices.Concat(r.times, o.times), spent: r.spent + o.spent}
}

func (r DiskRate) perSecond() float64 {
	if r.spent == 0 {
		return 0
	}
	return float64(len(r.times)) / r.spent.Seconds()
}

// P50 returns the median time of an append.
func (r DiskRate) P50() time.Duration { return percentile(r.times, 50) }

// percentile returns the time that so many percent of times do not exceed.
func percentile(times []time.Duration, percent int) time.Duration {
	if len(times) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(times))
	return sorted[min(len(sorted)*percent/100, len(sorted)-1)]
}
